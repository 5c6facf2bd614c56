const body = document.querySelector("tbody"),
  rows = [...body.rows];
const find = document.querySelector("input");
find.parentElement.hidden = false;
find.addEventListener("input", () => {
  const words = find.value.toLowerCase().split(" ");
  for (const row of rows) row.hidden = !words.every((word) => row.dataset.find.includes(word));
});
for (const heading of document.querySelectorAll("th[data-key]")) {
  const button = document.createElement("button");
  button.className = "link";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => {
    const key = heading.dataset.key,
      text = key === "find";
    const before = heading.getAttribute("aria-sort");
    const up = before ? before === "descending" : text;
    for (const other of document.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    const order = (a, b) =>
      text ? a.dataset[key].localeCompare(b.dataset[key]) : a.dataset[key] - b.dataset[key];
    body.append(...rows.sort((a, b) => (up ? order(a, b) : order(b, a))));
  });
}
