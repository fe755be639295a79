// The editor works without this script. It saves by itself, shows the mail while it is written, drags blocks,
// undoes, and puts marks of Markdown and variables where the cursor is.
"use strict";
(() => {
  const editor = document.querySelector("[data-editor]");
  if (!editor || !editor.querySelector(".block-tools, [data-head] button")) return;
  const { path, kind, csrf } = editor.dataset;
  const root = editor.querySelector("[data-root]");
  const head = editor.querySelector("[data-head]");
  const look = editor.querySelector("[data-look]");
  const state = editor.querySelector("[data-state]");
  const conflict = editor.querySelector("[data-conflict]");
  const undo = editor.querySelector("[data-undo]");
  const redo = editor.querySelector("[data-redo]");
  let revision = editor.dataset.revision;
  editor.classList.add("has-script");
  editor.querySelector("[data-bar]").hidden = false;

  // What is written: every value is a text, as in the forms.
  const own = (list) => [...list.children].filter((child) => child.matches("[data-block]"));
  const readBlock = (block) => {
    const fields = {};
    for (const field of block.querySelector(".block-fields").querySelectorAll("[name]")) {
      fields[field.name] = field.type === "checkbox" ? (field.checked ? "yes" : "") : field.value;
    }
    const read = { type: block.dataset.block, fields };
    const columns = block.querySelector(".block-columns");
    if (columns) read.columns = [...columns.children].map((column) => own(column).map(readBlock));
    return read;
  };
  const read = () => {
    const written = { kind, heads: {} };
    for (const field of head.querySelectorAll("[name]")) {
      if (["subject", "from", "reply_to"].includes(field.name)) written.heads[field.name] = field.value;
      else if (["preheader", "language", "source", "text"].includes(field.name)) written[field.name] = field.value;
    }
    if (root) written.blocks = own(root).map(readBlock);
    return written;
  };
  const made = (block) => {
    const template = editor.querySelector(`template[data-new="${block.type}"]`);
    const element = template.content.firstElementChild.cloneNode(true);
    for (const field of element.querySelector(".block-fields").querySelectorAll("[name]")) {
      const value = block.fields[field.name] ?? "";
      if (field.type === "checkbox") field.checked = Boolean(value);
      else field.value = value;
    }
    const columns = element.querySelector(".block-columns");
    if (columns && block.columns) {
      const sample = columns.firstElementChild;
      const all = block.columns.map((inner, index) => {
        const column = sample.cloneNode(true);
        own(column).forEach((child) => child.remove());
        column.setAttribute("aria-label", sample.getAttribute("aria-label").replace(/\d+/, index + 1));
        column.prepend(...inner.map(made));
        return column;
      });
      columns.replaceChildren(...all);
    }
    dress(element);
    excerpt(element);
    return element;
  };
  const write = (written) => {
    for (const field of head.querySelectorAll("[name]")) {
      const value = written.heads[field.name] ?? written[field.name];
      if (value !== undefined && field.type !== "hidden") field.value = value;
    }
    if (root) {
      const all = () => [...root.querySelectorAll("[data-block]")];
      const before = all(), open = before.map((block) => block.querySelector("details").open);
      const focused = document.activeElement?.closest("[data-block]"), name = document.activeElement?.name;
      const place = before.indexOf(focused);
      own(root).forEach((block) => block.remove());
      root.prepend(...written.blocks.map(made));
      all().forEach((block, index) => { block.querySelector("details").open = open[index] ?? false; });
      const block = place < 0 ? null : all()[place];
      (block?.querySelector(`[name="${CSS.escape(name ?? "")}"]`) ?? block?.querySelector("summary"))?.focus();
    }
  };

  // Undo and redo: the states of before, as texts.
  let history = [JSON.stringify(read())], here = 0, grouping = 0;
  const remember = (isTyping) => {
    const now = JSON.stringify(read());
    if (now === history[here]) return false;
    const again = isTyping && Date.now() - grouping < 1500 && here > 0;
    history = history.slice(0, again ? here : here + 1);
    history.push(now);
    if (history.length > 100) history.shift();
    here = history.length - 1;
    grouping = isTyping ? Date.now() : 0;
    buttons();
    return true;
  };
  const buttons = () => { undo.disabled = here === 0; redo.disabled = here >= history.length - 1; };
  const travel = (step) => {
    if (here + step < 0 || here + step >= history.length) return;
    here += step;
    grouping = 0;
    write(JSON.parse(history[here]));
    buttons();
    later();
  };
  undo.addEventListener("click", () => travel(-1));
  redo.addEventListener("click", () => travel(1));

  // Saving, one at a time. Whoever was overtaken decides; whoever was logged out goes on when they are back.
  let saved = history[0], running = null, saveTimer = 0, previewTimer = 0, isStopped = false, isLeaving = false, token = csrf;
  const body = (written, more) => {
    const { heads, ...rest } = written;
    return new URLSearchParams({ csrf_token: token, document: JSON.stringify(rest), ...heads, ...more });
  };
  const unsaved = () => JSON.stringify(read()) !== saved;
  const again = (milliseconds) => { clearTimeout(saveTimer); saveTimer = setTimeout(save, milliseconds); };
  const newToken = async () => {
    const answer = await fetch(path);
    if (!answer.ok || answer.redirected) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = token;
    token = page.querySelector("[data-editor]")?.dataset.csrf ?? token;
    for (const field of document.querySelectorAll("input[name=csrf_token]")) field.value = token;
    return token !== before;
  };
  const send = async (now) => {
    const answer = await fetch(`${path}/save`, { method: "POST", body: body(JSON.parse(now), { revision }) });
    const isJson = (answer.headers.get("content-type") ?? "").startsWith("application/json");
    if (!isJson && (answer.redirected || answer.status === 403)) {
      state.textContent = editor.dataset.saidSession;
      again(await newToken() ? 0 : 5000);
      return;
    }
    const said = isJson ? await answer.json() : { message: answer.status };
    if (answer.ok && isJson) {
      saved = now;
      revision = said.revision;
      for (const field of editor.querySelectorAll("input[name=revision]")) field.value = revision;
      editor.querySelector("[data-checks]").innerHTML = said.checks;
      if (unsaved()) again(3000);
      else state.textContent = editor.dataset.saidSaved;
    } else if (said.conflict) {
      isStopped = true;
      conflict.hidden = false;
      conflict.scrollIntoView({ block: "nearest" });
      state.textContent = "";
    } else {
      // What is refused is refused again until it is changed; a server that has no time may have some later.
      state.textContent = `${editor.dataset.saidFailed} ${said.message}`;
      if (answer.status === 429 || answer.status >= 500) again(5000);
    }
  };
  const save = async () => {
    clearTimeout(saveTimer);
    if (running) return running;
    const now = JSON.stringify(read());
    if (isStopped || now === saved) return undefined;
    state.textContent = editor.dataset.saidSaving;
    running = send(now).catch(() => { state.textContent = editor.dataset.saidOffline; again(3000); });
    await running;
    running = null;
    return undefined;
  };
  // Stores all that is written; false where it could not.
  const saveAll = async () => {
    await save();
    if (unsaved()) await save();
    return !unsaved();
  };
  editor.querySelector("[data-take-theirs]").addEventListener("click", () => { isLeaving = true; location.reload(); });
  editor.querySelector("[data-keep-mine]").addEventListener("click", () => {
    conflict.hidden = true;
    isStopped = false;
    revision = "";
    // What is stored is of somebody else: also what was stored before goes there once more.
    saved = "";
    save();
  });
  addEventListener("beforeunload", (event) => { if (!isLeaving && unsaved()) event.preventDefault(); });
  document.addEventListener("visibilitychange", () => { if (document.visibilityState === "hidden") save(); });
  addEventListener("pagehide", () => {
    if (!isLeaving && !isStopped && unsaved()) navigator.sendBeacon(`${path}/save`, body(read(), { revision }));
  });
  // Publishing, testing, another way of writing and the next step use what is stored: it is stored first.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form === head || form === look || form.matches(".block-form, [data-add]") || form.method !== "post" || !unsaved()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (await saveAll()) { delete form.dataset.sent; form.requestSubmit(event.submitter); }
  }, true);
  for (const link of document.querySelectorAll("a[data-save-first], [data-save-first] a")) {
    link.addEventListener("click", async (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || !unsaved()) return;
      event.preventDefault();
      if (await saveAll()) location.assign(link.href);
    });
  }

  // The preview: a form posts into a new frame, which takes the place of the old one when it is there.
  const box = editor.querySelector("[data-preview]");
  const values = () => Object.fromEntries(new FormData(look));
  // One is on its way at a time, so that none waits behind older ones; the next begins with what is written then.
  let number = 0, began = 0, isStale = false;
  const preview = () => {
    isStale = began > 0 && Date.now() - began < 3000;
    if (isStale) return;
    began = Date.now();
    number += 1;
    const mine = number, name = `preview-${number}`;
    const frame = document.createElement("iframe");
    frame.name = name;
    frame.className = "mail is-waiting";
    frame.title = box.querySelector("iframe").title;
    frame.setAttribute("sandbox", "allow-popups allow-popups-to-escape-sandbox");
    box.append(frame);
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: `${path}/html`, target: name, hidden: true });
    for (const [key, value] of body(read(), values())) {
      const input = document.createElement("input");
      Object.assign(input, { type: "hidden", name: key, value });
      form.append(input);
    }
    document.body.append(form);
    frame.addEventListener("load", () => {
      if (mine !== number) { frame.remove(); return; }
      began = 0;
      for (const old of box.querySelectorAll("iframe")) if (old !== frame) old.remove();
      frame.classList.remove("is-waiting");
      box.dataset.shown = String(Date.now());
      if (isStale) preview();
    });
    HTMLFormElement.prototype.submit.call(form);
    form.remove();
    box.classList.toggle("is-phone", look.elements.width.value === "phone");
  };
  look.addEventListener("submit", (event) => { event.preventDefault(); preview(); });
  look.addEventListener("change", () => {
    for (const field of document.querySelectorAll("form[action$='/test'] input[name=contact]")) field.value = look.elements.contact.value;
    preview();
  });

  const later = () => {
    if (state.textContent === editor.dataset.saidSaved) state.textContent = "";
    clearTimeout(previewTimer);
    previewTimer = setTimeout(preview, 20);
    again(2500);
  };
  const changed = (isTyping) => { if (remember(isTyping)) later(); };

  editor.addEventListener("input", (event) => {
    if (look.contains(event.target) || event.target.matches("[data-insert-list], [name=count]")) return;
    const block = event.target.closest("[data-block]");
    if (block) excerpt(block);
    changed(event.target.tagName !== "SELECT" && event.target.type !== "checkbox");
  });
  const excerpt = (block) => {
    const fields = block.querySelector(".block-fields");
    const first = ["text", "alt", "src", "html", "links"].map((name) => fields.querySelector(`[name=${name}]`));
    const text = first.map((field) => field?.value).find(Boolean) || "";
    block.querySelector("[data-excerpt] bdi").textContent = text.slice(0, 60);
  };

  // Blocks: add, move, copy, delete; the number of columns.
  editor.addEventListener("submit", (event) => {
    const form = event.target;
    if (form === head) { event.preventDefault(); save(); return; }
    if (form.matches("[data-add]")) {
      event.preventDefault();
      const template = editor.querySelector(`template[data-new="${form.elements.type.value}"]`);
      const block = template.content.firstElementChild.cloneNode(true);
      dress(block);
      form.before(block);
      block.querySelector("details").open = true;
      block.querySelector(".block-fields [name]")?.focus();
      changed(false);
      return;
    }
    if (!form.matches(".block-form")) return;
    event.preventDefault();
    const block = form.closest("[data-block]"), operation = event.submitter?.value;
    const before = block.previousElementSibling, behind = block.nextElementSibling;
    if (operation === "up" && before?.matches("[data-block]")) before.before(block);
    else if (operation === "down" && behind?.matches("[data-block]")) behind.after(block);
    else if (operation === "duplicate") block.after(made(readBlock(block)));
    else if (operation === "delete") {
      const next = behind?.matches("[data-block]") ? behind : before;
      const list = block.parentElement;
      block.remove();
      (next?.querySelector("summary") ?? list.querySelector(":scope > [data-add] select")).focus();
    } else { save(); return; }
    if (operation === "up" || operation === "down") event.submitter.focus();
    changed(false);
  });
  editor.addEventListener("change", (event) => {
    if (event.target.name !== "count") return;
    const block = event.target.closest("[data-block]"), current = readBlock(block);
    const wanted = Number(event.target.value);
    const columns = current.columns.slice(0, wanted);
    for (const rest of current.columns.slice(wanted)) columns.at(-1).push(...rest);
    while (columns.length < wanted) columns.push([]);
    const fresh = made({ ...current, columns });
    fresh.querySelector("details").open = true;
    block.replaceWith(fresh);
    fresh.querySelector("[name=count]").focus();
    changed(false);
  });

  // Dragging: by its summary a block is taken to another place, not columns into columns.
  let dragged = null;
  const unmark = () => {
    for (const block of editor.querySelectorAll(".drop-before, .drop-after")) block.classList.remove("drop-before", "drop-after");
  };
  const dress = (block) => {
    block.querySelector("summary").draggable = true;
    for (const area of block.querySelectorAll("textarea[data-marks]")) bar(area);
    for (const field of block.querySelectorAll("[data-picture]")) uploader(field);
  };
  // A picture is uploaded with the text that stands for it, and its address is filled in.
  const uploader = (field) => {
    if (field.parentElement.nextElementSibling?.matches(".upload")) return;
    const label = editor.querySelector("template[data-upload]").content.firstElementChild.cloneNode(true);
    field.parentElement.after(label);
    label.querySelector("input").addEventListener("change", async (event) => {
      const file = event.target.files[0], alt = field.closest(".block-fields").querySelector("[name=alt]");
      if (!file) return;
      const form = new FormData();
      for (const [name, value] of [["csrf_token", token], ["as", "json"], ["alt", alt.value || file.name.replace(/\.\w+$/, "")]]) form.append(name, value);
      form.append("file", file);
      state.textContent = editor.dataset.saidSaving;
      try {
        const answer = await fetch("/dashboard/images", { method: "POST", body: form });
        const said = await answer.json();
        if (!answer.ok) throw new Error(said.message);
        field.value = said.address;
        if (!alt.value) alt.value = said.alt;
        excerpt(field.closest("[data-block]"));
        state.textContent = "";
        changed(false);
      } catch (fault) {
        state.textContent = `${editor.dataset.saidFailed} ${fault.message}`;
      }
      event.target.value = "";
    });
  };
  editor.addEventListener("dragstart", (event) => {
    const block = event.target.closest?.("summary")?.closest("[data-block]");
    if (!block) return;
    dragged = block;
    block.classList.add("is-dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", "");
  });
  const over = (event) => {
    const block = event.target.closest?.("[data-block]");
    if (!dragged || !block || block === dragged || dragged.contains(block)) return null;
    const isInner = block.parentElement.matches(".block-column");
    if (isInner && ["columns", "footer"].includes(dragged.dataset.block)) return null;
    const place = block.getBoundingClientRect();
    return { block, isBefore: event.clientY < place.top + place.height / 2 };
  };
  editor.addEventListener("dragover", (event) => {
    const target = over(event);
    unmark();
    if (!target) return;
    event.preventDefault();
    target.block.classList.add(target.isBefore ? "drop-before" : "drop-after");
  });
  editor.addEventListener("drop", (event) => {
    const target = over(event);
    if (!target) return;
    event.preventDefault();
    if (target.isBefore) target.block.before(dragged);
    else target.block.after(dragged);
    changed(false);
  });
  editor.addEventListener("dragend", () => { dragged?.classList.remove("is-dragged"); dragged = null; unmark(); });

  // Marks and variables: put around what is selected, so that the field's own undo takes them back.
  let last = null;
  editor.addEventListener("focusin", (event) => {
    if (event.target.matches("textarea:not([readonly]), input[data-insert]")) last = event.target;
  });
  const put = (field, text, from, to) => {
    field.focus();
    if (!document.execCommand("insertText", false, text)) {
      field.setRangeText(text);
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    if (from !== undefined) field.setSelectionRange(from, to);
  };
  const mark = (field, sign) => {
    const { selectionStart: start, selectionEnd: end, value } = field;
    const chosen = value.slice(start, end);
    if (sign === "link") {
      const text = `[${chosen}](https://)`;
      put(field, text, start + text.length - 1, start + text.length - 1);
    } else if (sign === "list") {
      put(field, (chosen || "").split("\n").map((line) => `- ${line}`).join("\n"));
    } else {
      put(field, `${sign}${chosen}${sign}`, start + sign.length, end + sign.length);
    }
  };
  const bar = (area) => {
    if (area.previousElementSibling?.matches(".marks")) return;
    const marks = editor.querySelector("template[data-marks-bar]").content.firstElementChild.cloneNode(true);
    marks.addEventListener("click", (event) => {
      const button = event.target.closest("[data-mark]");
      if (button) { event.preventDefault(); mark(area, button.dataset.mark); }
    });
    area.before(marks);
  };
  editor.querySelector("[data-insert-list]").addEventListener("change", (event) => {
    const name = event.target.value, field = last?.isConnected ? last : head.elements.subject;
    event.target.value = "";
    if (!name) return;
    const fallback = name.endsWith("|") ? editor.dataset.saidFallback : "";
    const start = field.selectionStart + 3 + name.length;
    put(field, `{{{${name}${fallback}}}}`, start, start + fallback.length);
  });
  editor.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
    const key = event.key.toLowerCase(), field = event.target;
    if (key === "s") { event.preventDefault(); save(); return; }
    const inText = field.matches("textarea, input:not([type=checkbox])");
    if (inText && field.matches("[data-marks]") && ["b", "i", "k"].includes(key)) {
      event.preventDefault();
      event.stopPropagation();
      mark(field, { b: "**", i: "*", k: "link" }[key]);
    } else if (!inText && (key === "z" || key === "y")) {
      event.preventDefault();
      travel(key === "y" || event.shiftKey ? 1 : -1);
    }
  });

  for (const block of editor.querySelectorAll("[data-root] [data-block]")) dress(block);
  for (const area of head.querySelectorAll("textarea[data-marks]")) bar(area);
  buttons();
})();
