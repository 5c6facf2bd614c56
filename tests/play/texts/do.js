(draws) => {
    const all = [...document.querySelectorAll("button, summary, select, input[type=checkbox]")].filter(
    (one) => !one.disabled && one.checkVisibility() && !one.closest("#bar")
        && !["save-gif", "save-png", "download", "notice"].includes(one.id)
        && (one.tagName !== "BUTTON" || one.id || one.textContent)), provinces = [...document.querySelectorAll("#board .province")];
    const pick = (list, draw) => list[Math.floor(draw * list.length)];
    const one = draws[0] < 0.2 ? pick(provinces, draws[1]) : pick(all, draws[1]);
    if (one.tagName === "SELECT") {
        one.value = pick([...one.options].filter((o) => !o.disabled), draws[2])?.value;
        one.dispatchEvent(new Event("change", { bubbles: true }));
    } else if (draws[0] > 0.9 && document.querySelector("#slider").offsetWidth) {
        const slider = document.querySelector("#slider");
        slider.value = Math.floor(draws[2] * (Number(slider.max) + 1));
        slider.dispatchEvent(new Event("input", { bubbles: true }));
    } else one.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
    return one.id || one.outerHTML.slice(0, 120);
}
