// Enter sends what is typed, with Shift it begins a line; what an input method takes Enter for is its own.
const text = document.getElementById("text");
text.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  if (!event.repeat) text.form.requestSubmit();
});
