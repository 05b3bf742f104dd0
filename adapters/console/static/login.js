// The code of a link stands behind the `#`: no server or proxy has seen it. It is posted at once, and
// taken out of the address, so that no history keeps it.
const code = location.hash.slice(1);
if (code) {
  const form = document.getElementById("by-code");
  form.elements.code.value = code;
  history.replaceState(null, "", location.pathname);
  form.hidden = false;
  document.getElementById("by-token").hidden = true;
  if (form.elements.totp) form.elements.totp.focus();
  else form.requestSubmit();
}
