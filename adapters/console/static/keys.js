// j and k go through the rows, Enter opens one, / goes to the filter.
const rows = [...document.querySelectorAll(".turns li")];
let at = -1;
function go(step) {
  rows[at]?.classList.remove("here");
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  rows[at]?.classList.add("here");
  rows[at]?.querySelector("a").focus();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "/") {
    event.preventDefault();
    const filter = document.querySelector("details");
    filter.open = true;
    filter.querySelector("input").focus();
  }
});
