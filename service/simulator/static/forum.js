// Small comforts of the simulator's pages; every page works without them.
"use strict";

const wanted = document.querySelector(".post.wanted");
if (wanted) wanted.scrollIntoView({ block: "center" });

for (const select of document.querySelectorAll("select[data-submit]")) {
  select.form.querySelector("button").hidden = true;
  select.addEventListener("change", () => select.form.requestSubmit());
}

for (const button of document.querySelectorAll("button.insert")) {
  button.addEventListener("click", () => {
    const text = button.form.elements.raw;
    text.setRangeText(button.dataset.insert, text.selectionStart, text.selectionEnd, "end");
    text.focus();
  });
}

// A topic page looks for new posts: often while somebody waits for the bot, else now and then.
const posts = document.getElementById("posts");
const waiting = document.getElementById("waiting");
const OFTEN = 1500;
const SELDOM = 10000;
let version = null;

async function refresh() {
  const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelectorAll("#posts > *");
  const keep = new Set([...fresh].map((post) => post.id));
  for (const old of [...posts.children]) if (!keep.has(old.id)) old.remove();
  for (const post of fresh) {
    const old = document.getElementById(post.id);
    const copy = document.importNode(post, true);
    if (!old) {
      copy.classList.add("new");
      posts.append(copy);
      copy.scrollIntoView({ block: "nearest", behavior: "smooth" });
    } else if (old.dataset.version !== post.dataset.version) {
      old.replaceWith(copy);
    }
  }
}

async function look() {
  let pause = SELDOM;
  try {
    const answer = await fetch(posts.dataset.state, { headers: { Accept: "application/json" } });
    if (answer.ok) {
      const state = await answer.json();
      if (version !== null && version !== state.version) await refresh();
      version = state.version;
      waiting.hidden = !state.waiting;
      if (state.waiting) pause = OFTEN;
    }
  } catch (fault) {
    if (!(fault instanceof TypeError)) throw fault; // the forum is away: look again later
  }
  setTimeout(look, document.hidden ? SELDOM : pause);
}

if (posts) look();
