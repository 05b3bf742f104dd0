// The address of a page to the clipboard, where the browser lets a page have it (https, or this machine).
const button = document.querySelector("button[data-copy]");
if (button && navigator.clipboard) {
  const words = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(location.origin + location.pathname);
    } catch {
      return; // the browser has asked, and somebody said no
    }
    button.textContent = button.dataset.copy;
    setTimeout(() => { button.textContent = words; }, 2000);
  });
}
