// An address to the clipboard, where the browser lets a page have it (https, or this machine): that of the page, or
// of the row that a button stands in. Rows that come later are cloned from the template, and have theirs, too.
const DONE = 2000;
function where(button) {
  const link = button.closest("li.turn")?.querySelector("a");
  return link ? link.href : location.origin + location.pathname;
}
if (navigator.clipboard) {
  for (const root of [document, document.getElementById("row")?.content])
    root?.querySelectorAll("button[data-copy]").forEach((button) => { button.hidden = false; });
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button || button.classList.contains("copied")) return;
    try {
      await navigator.clipboard.writeText(where(button));
    } catch {
      return; // the browser has asked, and somebody said no
    }
    const words = button.textContent;
    button.classList.add("copied");
    if (button.dataset.copy) button.textContent = button.dataset.copy; // that of a row has a sign
    setTimeout(() => {
      if (button.dataset.copy) button.textContent = words;
      button.classList.remove("copied");
    }, DONE);
  });
}
