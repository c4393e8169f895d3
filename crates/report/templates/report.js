"use strict";
// Everything on the page can be read without this script. It makes the figures answer, and saves data.
(() => {
  const byId = (id) => document.getElementById(id);

  const save = (name, text, type) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  };

  const quoted = (value) => {
    let text = value === null || value === undefined ? "" : String(value);
    // A spreadsheet would run text that begins like a formula; the apostrophe says that it is text.
    const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);
    if (/^[=+\-@\t\r\n]/.test(text) && !isNumber) text = "'" + text;
    return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
  };

  // One table for all runs: the columns of every run's factors, empty where a run has no such factor.
  const csv = ({ columns, runs }) => {
    const factors = [...new Set(runs.flatMap((run) => run.factors))];
    const header = ["experiment", ...factors.map((f) => "level_" + f), ...columns, "throughput_mb_s"];
    const lines = [header.map(quoted).join(",")];
    const at = (name) => columns.indexOf(name);
    for (const run of runs) {
      const levels = new Map(run.cells);
      const place = factors.map((factor) => run.factors.indexOf(factor));
      for (const row of run.samples) {
        const own = levels.get(row[at("cell")]) || [];
        const elapsed = Math.max(row[at("elapsed_ns")], 1);
        const throughput = (row[at("bytes")] * 1e3) / elapsed;
        const values = [run.experiment, ...place.map((i) => own[i]), ...row, throughput];
        lines.push(values.map(quoted).join(","));
      }
    }
    return lines.join("\r\n") + "\r\n";
  };

  const offerSamples = () => {
    const saving = byId("csv");
    saving.hidden = false;
    saving.addEventListener("click", () => {
      save("samples.csv", csv(JSON.parse(byId("samples").textContent)), "text/csv");
    });
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

  // What is folded away on the screen is part of what is printed.
  const unfoldForPrint = () => {
    addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
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

  // Two switches choose one of the variants that lie in the page.
  const offerVariants = (figure, controls, hideTip) => {
    const variants = [...figure.querySelectorAll(".variant")];
    const shown = variants.find((variant) => !variant.hidden);
    if (variants.length < 2 || !shown) return;
    const chosen = { scale: shown.dataset.scale, center: shown.dataset.center };
    const show = () => {
      hideTip();
      for (const variant of variants) {
        const { scale, center } = variant.dataset;
        variant.hidden = scale !== chosen.scale || center !== chosen.center;
      }
    };
    controls.append(
      button("Logarithmic axis", chosen.scale === "log", (on) => {
        chosen.scale = on ? "log" : "linear";
        show();
      }),
      button("Mean", chosen.center === "mean", (on) => {
        chosen.center = on ? "mean" : "median";
        show();
      }),
    );
  };

  const offerSeries = (figure, controls, hideTip) => {
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
    const marks = () => [...figure.querySelectorAll(".variant:not([hidden]) .mark")].filter((m) => m.getClientRects().length > 0);
    const distance = (mark, x, y) => {
      const at = mark.getBoundingClientRect();
      return Math.hypot(Math.max(at.left - x, 0, x - at.right), Math.max(at.top - y, 0, y - at.bottom));
    };
    const nearest = (x, y) => {
      const near = marks().map((mark) => [distance(mark, x, y), mark]).filter(([far]) => far < 20);
      near.sort((a, b) => a[0] - b[0]);
      return near.length > 0 ? near[0][1] : null;
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
    for (const svg of figure.querySelectorAll("svg")) {
      svg.setAttribute("tabindex", "0");
      svg.addEventListener("pointermove", (event) => {
        const mark = nearest(event.clientX, event.clientY);
        if (mark) tell(mark);
        else hide();
      });
      svg.addEventListener("pointerleave", hide);
      svg.addEventListener("blur", hide);
      svg.addEventListener("keydown", (event) => {
        if (event.key === "Escape") return hide();
        const mark = step(event.key);
        if (!mark) return;
        event.preventDefault();
        tell(mark);
      });
    }
    return hide;
  };

  const animate = (figure) => {
    takeWords(figure);
    const hide = offerWords(figure);
    const controls = document.createElement("div");
    controls.className = "controls";
    offerVariants(figure, controls, hide);
    offerSeries(figure, controls, hide);
    if (controls.children.length > 0) figure.prepend(controls);
  };

  for (const figure of document.querySelectorAll("figure")) animate(figure);
  offerSamples();
  offerDefinitions();
  unfoldForPrint();
  addEventListener("hashchange", unfoldTarget);
  unfoldTarget();
})();
