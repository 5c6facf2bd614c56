async () => {
    const seen = { covered: [], marked: 0, jumps: 0, boxes: 0 };
    const flyout = document.getElementById("flyout"), rest = () =>
        new Promise((done) => setTimeout(done, 30));
    const count = (label) => {
        const box = flyout.getBoundingClientRect();
        seen.boxes++;
        for (const mark of document.querySelectorAll("#board [data-mark]")) {
            const code = mark.dataset.mark;
            const target = document.querySelector(`#board .unit[data-unit*=" ${code}"]`) ?? mark;
            const { left, right, top, bottom } = target.getBoundingClientRect();
            const x = (left + right) / 2, y = (top + bottom) / 2;
            const frame = document.getElementById("board").getBoundingClientRect();
            if (x < frame.left || x > frame.right || y < frame.top || y > frame.bottom) continue;
            seen.marked++;
            if (x > box.left && x < box.right && y > box.top && y < box.bottom)
                seen.covered.push(`${label} ${code}`);
        }
        return `${Math.round(box.left)} ${Math.round(box.top)}`;
    };
    for (const id of [...document.querySelectorAll("#units .unit")].map(({ id }) => id)) {
        document.getElementById(id).click();
        await rest();
        const first = count(id);
        for (const mode of ["support", "convoy", "via"]) {
            const button = flyout.querySelector(`[data-mode=${mode}]`);
            button?.click();
            await rest();
            if (button && count(`${id} ${mode}`) !== first) seen.jumps++;
        }
    }
    return seen;
}