// Two quick clicks send a form once: the answer to the second would say that nothing was done, or that the code was used.
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
