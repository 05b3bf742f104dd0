// What is new waits behind a button while somebody reads; then the rows are asked for, and a template is
// cloned for each: no browser parses what people wrote. One stream a page, closed while the page is
// hidden: a browser keeps six connections to us in all.
const sign = document.querySelector("[data-stream]");
const list = document.querySelector("[data-rows]");
const button = document.querySelector(".fresh-rows");
const blank = document.getElementById("row");
const names = new Set();
const TEXTS = ["when", "who", "said", "ended", "because", "cost"];
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
    count();
  });
  source.addEventListener("error", () => {
    const time = new Date().toTimeString().slice(0, 5);
    say(sign.dataset.stopped.replace("{time}", time), true);
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || open(), 5000);
  });
}

function count() {
  if (!button) return;
  if (!list && names.size && isIdle()) return location.reload();
  button.textContent = sign.dataset.fresh.replace("{count}", names.size);
  button.hidden = !names.size;
}

function row(one) {
  const made = blank.content.firstElementChild.cloneNode(true);
  made.className = `turn ${one.tone} fresh`;
  made.querySelector("a").href = one.link;
  for (const name of TEXTS) made.querySelector(`.${name}`).textContent = one[name];
  return made;
}

// Where there are no rows, the page is loaded again: by itself, as long as nobody has begun to say something there.
function isIdle() {
  return ![...document.querySelectorAll("main input, main textarea")].some((one) => one.value !== one.defaultValue);
}

async function show() {
  if (!list) return location.reload();
  const asked = [...names];
  const answer = await fetch(list.dataset.rows, { redirect: "manual" }).catch(() => null);
  if (!answer) return; // the connection is lost, as the sign says: the button stays for later
  asked.forEach((name) => names.delete(name));
  count();
  if (!answer.ok) return location.reload(); // the page says why
  const { rows, following } = await answer.json();
  list.replaceChildren(...rows.map(row));
  list.parentElement.querySelector(".empty")?.remove();
  const older = document.querySelector(".older");
  if (older) {
    older.href = `?${following}`;
    older.hidden = !following;
  }
  list.querySelector("a")?.focus();
}

button?.addEventListener("click", show);
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
if (!document.hidden) open();
