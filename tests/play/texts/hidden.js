[...document.querySelectorAll("#board .unit")].filter((unit) => {
    const a = unit.getBoundingClientRect();
    return [...document.querySelectorAll("#board .names .label")].some((name) => {
        const b = name.getBoundingClientRect();
        return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 4
            && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 7;
    });
}).map((unit) => unit.dataset.unit)
