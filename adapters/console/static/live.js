// What is new waits behind a button while somebody reads. One stream a page, closed while the page is
// hidden: a browser keeps six connections to us in all.
const sign = document.querySelector("[data-stream]");
const button = document.querySelector(".fresh-rows");
const names = new Set();
let source = null;
let last = sign.dataset.after;

function say(text, off) {
  sign.textContent = text;
  sign.classList.toggle("off", off);
  sign.hidden = false;
}

function close() {
  source?.close();
  source = null;
}

function open() {
  close();
  source = new EventSource(`${sign.dataset.stream}?after=${last}`);
  source.addEventListener("open", () => say(sign.dataset.live, false));
  source.addEventListener("news", (event) => {
    last = event.lastEventId;
    names.add(JSON.parse(event.data).name);
    button.textContent = sign.dataset.fresh.replace("{count}", names.size);
    button.hidden = false;
  });
  source.addEventListener("error", () => {
    const time = new Date().toTimeString().slice(0, 5);
    say(sign.dataset.stopped.replace("{time}", time), true);
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || open(), 5000);
  });
}

button.addEventListener("click", () => location.reload());
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
if (!document.hidden) open();
