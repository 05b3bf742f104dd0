// The code of a link stands behind the `#`: no server or proxy has seen it. It is posted at once, and
// taken out of the address, so that no history keeps it. A link that is opened in a tab with this page
// loads nothing: only the part behind the `#` changes.
const form = document.getElementById("by-code");
function enter() {
  const code = location.hash.slice(1);
  if (!code || document.getElementById(code)) return; // a place on this page is no code
  history.replaceState(null, "", location.pathname);
  form.elements.code.value = code;
  form.hidden = false;
  document.querySelector(".trouble")?.remove(); // it is about the one before
  document.getElementById("by-token").hidden = true;
  if (form.elements.totp) form.elements.totp.focus();
  else form.requestSubmit();
}
addEventListener("hashchange", enter);
enter();
