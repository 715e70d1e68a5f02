// Tips, zoom and the choice between light and dark. The page is complete without this script.
(() => {
  "use strict";
  const page = document.currentScript.closest(".vramp-page");
  const data = JSON.parse(page.querySelector("script.vramp-data").textContent);

  // Light or dark: as the system has it, until the button is pressed.
  const theme = page.querySelector("button.theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = page.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    page.dataset.theme = now === "dark" ? "light" : "dark";
  });

  // Zoom: buttons, or the wheel with Ctrl. Moving is the pane's own scrolling, or dragging with a mouse.
  const pane = page.querySelector(".pane");
  const graphs = [...pane.querySelectorAll("svg.graph")];
  let scale = 1;
  const zoom = (next, x, y) => {
    next = Math.min(4, Math.max(0.05, next));
    const factor = next / scale;
    const left = (pane.scrollLeft + x) * factor - x;
    const top = (pane.scrollTop + y) * factor - y;
    scale = next;
    for (const graph of graphs) {
      const { width, height } = graph.viewBox.baseVal;
      graph.setAttribute("width", width * scale);
      graph.setAttribute("height", height * scale);
    }
    pane.scrollTo(left, top);
  };
  page.querySelector(".zoom").hidden = false;
  page.querySelector(".zoom").addEventListener("click", (event) => {
    const act = event.target.dataset.zoom;
    const shown = graphs.find((graph) => graph.getBoundingClientRect().width > 0) || graphs[0];
    const { width, height } = shown.viewBox.baseVal;
    const whole = Math.min(pane.clientWidth / width, pane.clientHeight / height, 1);
    const next = { in: scale * 1.3, out: scale / 1.3, one: 1, whole }[act];
    if (next) zoom(next, pane.clientWidth / 2, pane.clientHeight / 2);
  });
  pane.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = pane.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  let held = null;
  pane.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) {
      held = { x: event.clientX + pane.scrollLeft, y: event.clientY + pane.scrollTop };
    }
  });
  addEventListener("pointermove", (event) => {
    if (held) pane.scrollTo(held.x - event.clientX, held.y - event.clientY);
  });
  addEventListener("pointerup", () => { held = null; });

  // Tips: the text of data-tip, or the call of a rectangle of the timeline.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  page.append(tip);
  const time = (ns) => ns < 1e6 ? (ns / 1e3).toPrecision(3) + " µs" : (ns / 1e6).toPrecision(4) + " ms";
  const words = (target) => {
    const row = target.closest("svg[data-track]");
    if (row && target.tagName === "rect") {
      const number = row.closest(".timeline").dataset.window;
      const track = data.observed.timeline.windows[number].tracks[row.dataset.track];
      const [unit, frame, begin, end] = track.spans[[...row.children].indexOf(target)];
      return `${track.units[unit]}\nframe ${frame}\n${time(end - begin)}, from ${time(begin)}`;
    }
    const own = target.closest("[data-tip]");
    return own && page.contains(own) ? own.dataset.tip : "";
  };
  const show = (text, x, y) => {
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = Math.max(6, Math.min(x + 14, innerWidth - width - 6)) + "px";
    tip.style.top = Math.max(6, y + height + 24 > innerHeight ? y - height - 12 : y + 16) + "px";
  };
  page.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse") show(held ? "" : words(event.target), event.clientX, event.clientY);
  });
  page.addEventListener("pointerleave", () => show(""));
  page.addEventListener("click", (event) => show(words(event.target), event.clientX, event.clientY));
  page.addEventListener("keydown", (event) => { if (event.key === "Escape") show(""); });
  page.addEventListener("focusin", (event) => {
    const own = event.target.closest(".box");
    if (own && own.matches(":focus-visible")) {
      const box = own.getBoundingClientRect();
      show(own.dataset.tip, box.left, box.bottom - 10);
    }
  });
})();
