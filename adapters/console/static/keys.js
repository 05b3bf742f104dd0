// j and k go through the rows, Enter opens one, / goes to the filter, ? says so. All but ? can be turned off.
const OFF = "frost-keys-off";
const help = document.getElementById("keys");
const off = document.getElementById("keys-off");
off.checked = localStorage.getItem(OFF) === "1";
off.addEventListener("change", () => localStorage.setItem(OFF, off.checked ? "1" : ""));
function go(step) {
  const links = [...document.querySelectorAll(".turns li a")];
  const at = links.indexOf(document.activeElement) + step;
  links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
}
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (event.target.closest("input, select, textarea")) return;
  if ("?？".includes(event.key)) help.showModal();
  else if (off.checked) return;
  else if (event.key === "j") go(1);
  else if (event.key === "k") go(-1);
  else if (event.key === "/") {
    const filter = document.querySelector("details.filter");
    if (!filter) return;
    event.preventDefault();
    filter.open = true;
    filter.querySelector("input").focus();
  }
});
