// Screens work without this script; it makes them quicker: copying, keys, filters at once, live lists.
"use strict";
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`pillarbox-zone=${zone}`)) {
    document.cookie = `pillarbox-zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax`;
  }

  const said = (text) => {
    let place = document.getElementById("said");
    if (!place) {
      place = document.createElement("p");
      place.id = "said";
      place.className = "hidden";
      place.setAttribute("role", "status");
      document.body.append(place);
    }
    place.textContent = text;
  };

  const prepare = (root) => {
    for (const part of root.querySelectorAll("[data-needs-script]")) part.hidden = false;
    if (navigator.clipboard) {
      for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
    }
  };
  prepare(document);
  if (matchMedia("(max-width: 40rem)").matches) {
    for (const fold of document.querySelectorAll("details[data-fold]")) fold.open = false;
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (button) {
      const code = button.parentElement.querySelector("pre, code");
      try {
        await navigator.clipboard.writeText(code.textContent);
      } catch {
        getSelection().selectAllChildren(code);
        return;
      }
      const before = button.textContent;
      button.textContent = "✓";
      said(before);
      setTimeout(() => { button.textContent = before; }, 1200);
      return;
    }
    for (const open of document.querySelectorAll("details.dialog[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });

  // A step in the picture of the editor is its button; a chosen file goes into its text field.
  document.addEventListener("click", (event) => {
    const box = event.target.closest(".graph a[href^='#edit-']");
    const button = box && document.getElementById(box.getAttribute("href").slice(1));
    if (button) { event.preventDefault(); button.click(); }
  });
  document.addEventListener("change", async (event) => {
    const place = event.target.dataset.fileInto && document.getElementById(event.target.dataset.fileInto);
    if (place && event.target.files[0]) place.value = await event.target.files[0].text();
  });

  // Whoever leaves a form with changes is asked. One that came back from the server may hold some.
  let unsaved = false;
  document.addEventListener("input", (event) => { if (event.target.closest("form[data-unsaved]")) unsaved = true; });
  document.addEventListener("submit", (event) => { if (!event.defaultPrevented) unsaved = false; });
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });

  // Later: a link whose text takes longer than the page is asked for, and stands in its place.
  for (const link of document.querySelectorAll("a[data-later]")) {
    fetch(link.dataset.later).then((answer) => answer.ok ? answer.text() : "").then((text) => {
      if (text) link.replaceWith(text);
    }, () => {});
  }

  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-filters]");
    if (form && event.target.tagName === "SELECT") form.requestSubmit();
    const all = event.target.closest("[data-choose-all]");
    if (all) {
      for (const box of all.closest("form").querySelectorAll("input[name=id]")) box.checked = all.checked;
    }
    const place = event.target.type === "checkbox" && event.target.form?.querySelector("[data-chosen]");
    if (place) {
      const count = event.target.form.querySelectorAll("input[name=id]:checked").length;
      place.textContent = count ? place.dataset.chosen.replace("#", count) : "";
    }
  });

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches("form[data-filters]")) {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    }
    if (form.method === "post" && !event.submitter?.formTarget) {
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
      setTimeout(() => delete form.dataset.sent, 4000);
    }
  });

  // Narrow: entries without the typed words are hidden, and groups without entries.
  document.addEventListener("input", (event) => {
    const scope = event.target.dataset.narrow && document.querySelector(event.target.dataset.narrow);
    if (!scope) return;
    const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of scope.querySelectorAll("[data-entry]")) {
      const text = entry.textContent.toLowerCase();
      entry.hidden = !words.every((word) => text.includes(word));
    }
    for (const group of scope.querySelectorAll("[data-entries]")) {
      group.hidden = !group.querySelector("[data-entry]:not([hidden])");
    }
  });

  // Keys: / or Ctrl-K search, g and a letter go, ? shows them all, Escape closes.
  let pending = "";
  const typing = (target) => target.closest("input, textarea, select, [contenteditable]");
  document.addEventListener("keydown", (event) => {
    const find = document.getElementById("find");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openMenu();
      find.focus();
      return;
    }
    if (event.key === "Escape") {
      for (const open of document.querySelectorAll("details.dialog[open]")) {
        open.open = false;
        open.querySelector("summary").focus();
      }
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift" || typing(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      const own = document.querySelector("main [data-key='/']");
      if (!own) openMenu();
      (own || find).focus();
    } else if (event.key === "?") {
      event.preventDefault();
      location.assign("/dashboard/keys");
    } else if (pending === "g") {
      const link = document.querySelector(`a[data-keys="${CSS.escape(event.key)}"]`);
      if (link) location.assign(link.href);
    } else if (presses(event.key)) {
      event.preventDefault();
    } else if (event.key === "j" || event.key === "k") {
      step(event.key === "j" ? 1 : -1);
    }
    pending = event.key === "g" && pending !== "g" ? "g" : "";
    if (pending) setTimeout(() => { pending = ""; }, 1500);
  });
  // Elements with a key of their own; x chooses the row with the focus, which acts of a list are about.
  const presses = (key) => {
    const box = document.activeElement?.closest("li, tr")?.querySelector("input[name=id]");
    if (key === "x" && box) { box.click(); return true; }
    const place = [...document.querySelectorAll("main [data-key]")].find((one) => one.dataset.key === key);
    if (!place) return false;
    const rows = place.closest("form[data-rows]");
    if (rows && !rows.querySelector("input[name=id]:checked")) {
      if (!box) return false;
      box.checked = true;
    }
    place.click();
    return true;
  };
  const openMenu = () => { const menu = document.getElementById("menu"); if (menu) menu.checked = true; };
  const step = (way) => {
    const rows = [...document.querySelectorAll("main a.row")];
    if (!rows.length) return;
    const now = rows.indexOf(document.activeElement);
    rows[Math.min(rows.length - 1, Math.max(0, now + way))].focus();
  };

  // What is opened counts as seen.
  for (const form of document.querySelectorAll("form[data-when-seen]")) {
    fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" }).then(() => {
      for (const button of document.querySelectorAll("main button[name=do][value=read]")) button.hidden = true;
    }, () => {});
  }

  // Live: the server says that something changed; the parts marked as live are fetched anew.
  const live = document.body.dataset.live;
  {
    let waiting = false, again = false;
    const renew = async () => {
      if (waiting) { again = true; return; }
      waiting = true;
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" } });
        if (answer.ok && !answer.redirected) {
          const page = new DOMParser().parseFromString(await answer.text(), "text/html");
          for (const part of document.querySelectorAll("[data-live-part]")) {
            const fresh = page.getElementById(part.id);
            const busy = part.contains(document.activeElement) || part.querySelector("details[open]:not([data-fold]), input:checked");
            if (fresh && !busy && fresh.innerHTML !== part.innerHTML) {
              part.replaceChildren(...fresh.childNodes);
              prepare(part);
            }
          }
        }
      } finally {
        waiting = false;
        if (again) { again = false; setTimeout(renew, 500); }
      }
    };
    if (live && window.EventSource) {
      const source = new EventSource(live);
      source.addEventListener("change", renew);
      source.addEventListener("end", () => source.close());
      addEventListener("pagehide", () => source.close());
    }
    // A part that waits for the end of some work asks for itself every second until it is there.
    const poll = async () => {
      if (!document.querySelector("[data-poll]")) return;
      await renew().catch(() => {});
      setTimeout(poll, 1000);
    };
    setTimeout(poll, 300);
  }
})();
