// What every page does. Two quick clicks send a form once: the answer to the second would say that nothing was done, or
// that the code was used.
const PATIENCE = 10000; // milliseconds, then the first may be lost
const sent = new Map(); // each form that was sent: its button, which says so, and the timer of its patience
addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if (sent.has(form)) return event.preventDefault();
  const button = event.submitter ?? form.querySelector("button"); // a key may have sent it
  button.setAttribute("aria-busy", "true");
  sent.set(form, [button, setTimeout(release, PATIENCE, form)]);
});
function release(form) {
  const [button, timer] = sent.get(form);
  clearTimeout(timer);
  button.removeAttribute("aria-busy");
  sent.delete(form);
}
addEventListener("pageshow", () => [...sent.keys()].forEach(release)); // the Back button leads to it
// Reload and Back ask for the page anew, and send nothing once more. Where words were typed they are in the answer to a
// form alone: there the browser asks first.
if (!document.querySelector("main textarea")) history.replaceState(null, "", location.href.replace(/#$/, ""));

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
      filter.querySelector("select, input").focus();
    }
  });
}
