"use strict";
// Everything on the page can be read without this script. It saves data.
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
    const text = value === null || value === undefined ? "" : String(value);
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
    const button = byId("csv");
    button.hidden = false;
    button.addEventListener("click", () => {
      save("samples.csv", csv(JSON.parse(byId("samples").textContent)), "text/csv");
    });
  };

  const offerDefinitions = () => {
    for (const pre of document.querySelectorAll("pre.toml")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Save " + pre.dataset.name;
      button.addEventListener("click", () => save(pre.dataset.name, pre.textContent, "application/toml"));
      pre.before(button);
    }
  };

  // What is folded away on the screen is part of what is printed.
  const unfoldForPrint = () => {
    addEventListener("beforeprint", () => {
      for (const details of document.querySelectorAll("details")) details.open = true;
    });
  };

  offerSamples();
  offerDefinitions();
  unfoldForPrint();
})();
