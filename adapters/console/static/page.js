// What every page does. Two quick clicks send a form once: the answer to the second would say that nothing was done, or
// that the code was used.
const PATIENCE = 10000; // milliseconds, then the first may be lost
let sent = new WeakMap();
addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  if (event.timeStamp < (sent.get(event.target) ?? 0)) event.preventDefault();
  else sent.set(event.target, event.timeStamp + PATIENCE);
});
addEventListener("pageshow", () => { sent = new WeakMap(); }); // the Back button leads to it
// Reload and Back ask for the page anew, and send nothing once more. Where words were typed they are in the answer to a
// form alone: there the browser asks first.
if (!document.querySelector("main textarea")) history.replaceState(null, "", location.href);

// j and k go through the rows, Enter opens one, / goes to the filter, ? says so. All but ? can be turned off. Who is not
// logged in has no rows.
const OFF = "frost-keys-off";
const help = document.getElementById("keys");
if (help) listen(document.getElementById("keys-off"));
function go(step) {
  const links = [...document.querySelectorAll(".turns li a")];
  const at = links.indexOf(document.activeElement) + step;
  links[Math.max(0, Math.min(links.length - 1, at))]?.focus();
}
function listen(off) {
  off.checked = localStorage.getItem(OFF) === "1";
  off.addEventListener("change", () => localStorage.setItem(OFF, off.checked ? "1" : ""));
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
}
