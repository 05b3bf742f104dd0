// What is new waits behind a button while somebody reads; then the rows are asked for, and a template is
// cloned for each: no browser parses what people wrote. One stream a page, closed while the page is
// hidden: a browser keeps six connections to us in all.
//
// A page without rows is asked for again, and what is new in its parts takes the place of what was there; no field is
// in any part, so that whoever types goes on typing.
const sign = document.querySelector("[data-stream]");
const list = document.querySelector("[data-rows]");
const button = document.querySelector(".fresh-rows");
const blank = document.getElementById("row");
const parts = document.querySelectorAll("[data-part]");
const names = new Set();
const TEXTS = ["when", "who", "said", "ended", "because", "cost"];
const end = document.getElementById("say");
const NEAR = 120; // pixels
let isAtEnd = location.hash === "#say";
let source = null;
let last = sign.dataset.after;
let renewed = Promise.resolve();

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
    if (list) count();
    else renewed = renewed.then(renew, renew);
  });
  source.addEventListener("error", () => {
    const time = new Date().toTimeString().slice(0, 5);
    say(sign.dataset.stopped.replace("{time}", time), true);
    if (source?.readyState === EventSource.CLOSED) setTimeout(() => document.hidden || open(), 5000);
  });
}

function count() {
  if (!button) return;
  button.textContent = sign.dataset.fresh.replace("{count}", names.size);
  button.hidden = !names.size;
}

// More of the same name may come while we ask: what is there then is older than that.
function take() {
  const asked = [...names];
  names.clear();
  return asked;
}

function putBack(asked) {
  asked.forEach((name) => names.add(name));
  count();
}

function row(one) {
  const made = blank.content.firstElementChild.cloneNode(true);
  made.className = `turn ${one.tone} fresh`;
  made.querySelector("a").href = one.link;
  for (const name of TEXTS) made.querySelector(`.${name}`).textContent = one[name];
  return made;
}

function page() {
  return new Promise((done) => {
    const ask = new XMLHttpRequest();
    ask.open("GET", location.href);
    ask.responseType = "document";
    ask.addEventListener("loadend", () => done(ask.response));
    ask.send();
  });
}

async function renew() {
  if (!names.size) return;
  const asked = take();
  const now = await page();
  const fresh = [...parts].map((part) => now?.getElementById(part.id));
  if (fresh.every(Boolean)) {
    fresh.forEach((part, at) => replace(parts[at], [...part.children]));
    stay();
    if (button) button.hidden = true;
  } else {
    putBack(asked); // the button loads the page that is in the place of the parts
  }
}

// Whoever is at the end of the page stays there, also when a picture above has come.
function stay() {
  if (isAtEnd) end?.scrollIntoView({ block: "end" });
}

function look() {
  isAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - NEAR;
}

function replace(part, ones) {
  ones.forEach((one, at) => {
    const old = part.children[at];
    if (!old) part.append(one);
    else if (!old.isEqualNode(one)) old.replaceWith(one);
  });
  while (part.children.length > ones.length) part.lastElementChild.remove();
}

async function show() {
  if (!list) return location.reload();
  const asked = take();
  const answer = await fetch(list.dataset.rows, { redirect: "manual" }).catch(() => null);
  if (!answer) return putBack(asked); // the connection is lost, as the sign says: the button stays for later
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

parts.forEach((part) => part.addEventListener("load", stay, true));
if (end) addEventListener("scroll", look);
button?.addEventListener("click", show);
document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
if (!document.hidden) open();
