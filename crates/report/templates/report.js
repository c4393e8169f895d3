"use strict";
// Everything on the page can be read without this script. It makes the figures answer, and saves definitions.
(() => {
  const byId = (id) => document.getElementById(id);

  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };

  const offerDefinitions = () => {
    for (const pre of document.querySelectorAll("pre.toml")) {
      const saving = document.createElement("button");
      saving.type = "button";
      saving.textContent = "Save " + pre.dataset.name;
      saving.addEventListener("click", () => save(pre.dataset.name, pre.textContent, "application/toml"));
      pre.before(saving);
    }
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // A page that was opened from a file may not be allowed to: a selection is.
      const field = document.createElement("textarea");
      field.value = text;
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
  };

  const offerCopies = () => {
    for (const pre of document.querySelectorAll("pre.commands")) {
      const copying = document.createElement("button");
      copying.type = "button";
      copying.className = "copy";
      copying.textContent = "Copy the commands";
      copying.dataset.text = pre.textContent;
      pre.before(copying);
    }
    for (const copying of document.querySelectorAll("button.copy")) {
      const name = copying.textContent;
      copying.hidden = false;
      copying.addEventListener("click", async () => {
        await copy(copying.dataset.text);
        copying.textContent = "Copied";
        setTimeout(() => { copying.textContent = name; }, 2000);
      });
    }
  };

  // A number in the smallest unit of its kind; null for a text.
  const units = { ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  const measure = (text) => {
    const found = /^([+-]?[\d.,\u00a0\u2009\u202f]*\d(?:e[+-]?\d+)?)\s*([^\s\d*]*)/i.exec(text.trim());
    return found ? Number(found[1].replace(/[,\u00a0\u2009\u202f]/g, "")) * (units[found[2]] || 1) : null;
  };

  const offerSorting = (table) => {
    const body = table.tBodies[0];
    // Rows of the main numbers have units of their own.
    if (!table.tHead || body.rows.length < 3 || table.closest("#glance")) return;
    const headings = [...table.tHead.rows[0].cells];
    for (const [column, heading] of headings.entries()) {
      const sorting = document.createElement("button");
      sorting.type = "button";
      sorting.textContent = heading.textContent;
      heading.textContent = "";
      heading.append(sorting);
      sorting.addEventListener("click", () => {
        const order = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
        for (const other of headings) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => {
          const text = row.cells[column].textContent;
          return { row, text, value: measure(text) };
        });
        // What has no number stands last in either order.
        rows.sort((a, b) => {
          if (a.value === null || b.value === null) {
            return (a.value === null) - (b.value === null) || sign * a.text.localeCompare(b.text);
          }
          return sign * (a.value - b.value);
        });
        body.append(...rows.map(({ row }) => row));
      });
    }
  };

  // The marks of a figure that are of the cell of a row, and the rows of a mark's cell.
  const marksOf = (row) => {
    const [, section, cell] = /^(.*)-c(-?\d+)$/.exec(row.id) || [];
    const within = section ? byId(section) : null;
    return within ? [...within.querySelectorAll(`.mark[data-cell="${cell}"]`)] : [];
  };
  const rowOf = (mark) => {
    const section = mark.closest("section");
    return section && mark.dataset.cell ? byId(section.id + "-c" + mark.dataset.cell) : null;
  };
  const cite = (rows) => {
    for (const part of document.querySelectorAll(".cited")) part.classList.remove("cited");
    for (const row of rows) {
      row.classList.add("cited");
      for (const mark of marksOf(row)) mark.classList.add("cited");
    }
  };

  // A finding shows its rows, a row its marks, a number at a glance its row.
  const offerLinks = () => {
    for (const link of document.querySelectorAll("a[data-rows]")) {
      link.addEventListener("click", () => cite(link.dataset.rows.split(" ").map(byId).filter(Boolean)));
    }
    for (const row of document.querySelectorAll("section tr[id]")) {
      row.addEventListener("pointerenter", () => cite([row]));
    }
  };

  // A link to what is folded away unfolds it.
  const unfoldTarget = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
  };

  const button = (text, pressed, onToggle) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.setAttribute("aria-pressed", pressed);
    made.addEventListener("click", () => {
      const now = made.getAttribute("aria-pressed") !== "true";
      made.setAttribute("aria-pressed", now);
      onToggle(now);
    });
    return made;
  };

  // Words of a mark stand in its <title>; a browser would show them late, and to a mouse only.
  const takeWords = (figure) => {
    for (const mark of figure.querySelectorAll(".mark")) {
      const title = mark.querySelector("title");
      mark.dataset.words = title ? title.textContent : "";
      if (title) title.remove();
    }
  };

  const offerSeries = (figure, controls, hideTip) => {
    // Stages cover each other's lower part: without one the next would show its height.
    if (figure.classList.contains("stages")) return;
    const all = [...figure.querySelectorAll("[data-series]")];
    const names = [...new Set(all.filter((e) => e.classList.contains("series")).map((e) => e.dataset.series))].filter((name) => name !== "");
    if (names.length < 2) return;
    for (const name of names) {
      controls.append(
        button(name, true, (on) => {
          hideTip();
          for (const part of all) {
            if (part.dataset.series === name) part.style.display = on ? "" : "none";
          }
        }),
      );
    }
  };

  // Tells of the mark nearest to the pointer, or of the one that the arrow keys are at.
  const offerWords = (figure) => {
    const tip = document.createElement("p");
    tip.className = "tip";
    tip.setAttribute("role", "status");
    figure.append(tip);
    let current = null;
    const hide = () => {
      if (current) current.classList.remove("current");
      current = null;
      tip.textContent = "";
    };
    const tell = (mark) => {
      if (mark === current) return;
      hide();
      current = mark;
      mark.classList.add("current");
      tip.textContent = mark.dataset.words;
      const at = mark.getBoundingClientRect();
      const frame = figure.getBoundingClientRect();
      const x = at.left + at.width / 2 - frame.left - tip.offsetWidth / 2;
      const y = at.top - frame.top - tip.offsetHeight - 6;
      tip.style.left = Math.max(0, Math.min(x, frame.width - tip.offsetWidth)) + "px";
      tip.style.top = Math.max(0, y) + "px";
    };
    const marks = () => [...figure.querySelectorAll(".mark")].filter((m) => m.getClientRects().length > 0);
    const distance = (part, x, y) => {
      const at = part.getBoundingClientRect();
      return Math.hypot(Math.max(at.left - x, 0, x - at.right), Math.max(at.top - y, 0, y - at.bottom));
    };
    // A symbol is at its centre; a bar is all of its area.
    const toPoint = (mark, x, y) => {
      const point = mark.querySelector(".point") || mark;
      if (point === mark || point.classList.contains("bar")) return distance(point, x, y);
      const at = point.getBoundingClientRect();
      return Math.hypot(at.left + at.width / 2 - x, at.top + at.height / 2 - y);
    };
    // The whiskers of other marks may lie over a symbol, and the lower part of a bar below another one, which is drawn later.
    const nearest = (x, y) => {
      const near = marks()
        .map((mark, place) => ({ mark, place, far: distance(mark, x, y), point: toPoint(mark, x, y) }))
        .filter(({ far }) => far < 20);
      near.sort((a, b) => a.point - b.point || a.far - b.far || b.place - a.place);
      return near.length > 0 ? near[0].mark : null;
    };
    const step = (key) => {
      const all = marks();
      const at = all.indexOf(current);
      // Up and down go to the same place on the x axis in another series.
      const same = all.filter((mark) => !current || mark.dataset.x === current.dataset.x);
      const across = same.indexOf(current);
      const next = {
        ArrowRight: all[Math.min(at + 1, all.length - 1)],
        ArrowLeft: all[Math.max(at - 1, 0)],
        ArrowUp: same[(across + 1) % same.length],
        ArrowDown: same[(across + same.length - 1) % same.length],
        Home: all[0],
        End: all[all.length - 1],
      };
      return next[key];
    };
    const frame = figure.querySelector(".drawing");
    frame.addEventListener("pointermove", (event) => {
      const mark = nearest(event.clientX, event.clientY);
      if (mark) tell(mark);
      else hide();
    });
    const follow = () => {
      const row = current && rowOf(current);
      if (!row) return;
      location.hash = row.id;
      cite([row]);
    };
    frame.addEventListener("click", follow);
    frame.addEventListener("pointerleave", hide);
    frame.addEventListener("blur", hide);
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      if (event.key === "Enter") return follow();
      const mark = step(event.key);
      if (!mark) return;
      event.preventDefault();
      tell(mark);
    });
    return hide;
  };

  for (const figure of document.querySelectorAll("figure")) {
    takeWords(figure);
    const hide = offerWords(figure);
    const controls = document.createElement("div");
    controls.className = "controls";
    figure.prepend(controls);
    offerSeries(figure, controls, hide);
  }
  for (const table of document.querySelectorAll(".scroll table")) offerSorting(table);
  offerLinks();
  offerCopies();
  offerDefinitions();
  addEventListener("hashchange", unfoldTarget);
  unfoldTarget();
})();
