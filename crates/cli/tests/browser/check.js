// Looks at every page of this document, as a reader would, and writes what is wrong into #complaints.
"use strict";
const complaints = [];
const near = (one, two) => Math.abs(one - two) < 1.5;

function look(frame) {
  const name = `${frame.dataset.name} at ${frame.width}`;
  const complain = (words) => complaints.push(`${name}: ${words}`);
  const view = frame.contentWindow;
  const page = view.document.querySelector(".vramp-page");
  if (!page) return complain("there is no page");
  const data = JSON.parse(page.querySelector("#vramp-data").textContent);
  if (data.vramp_report !== 1) complain("the data has another version");

  const back = () => view.getComputedStyle(page).backgroundColor;
  const isDark = (color) => color.match(/\d+/g).slice(0, 3).every((part) => Number(part) < 64);
  const wanted = matchMedia("(prefers-color-scheme: dark)").matches;
  if (isDark(back()) !== wanted) complain(`the system is ${wanted ? "dark" : "light"}, the page is ${back()}`);
  const theme = page.querySelector("button.theme");
  if (theme.hidden) return complain("the script did not run");
  theme.click();
  if (isDark(back()) === wanted) complain("the button does not change light and dark");
  theme.click();

  const wide = view.document.documentElement.scrollWidth;
  if (wide > view.innerWidth + 1) complain(`${wide} pixels wide`);

  const shown = [...page.querySelectorAll("svg.graph")].filter((graph) => graph.getBoundingClientRect().width > 0);
  if (shown.length !== 1) return complain(`${shown.length} graphs are shown`);
  const fused = data.plan.groups.filter((group) => group.handlers.length > 1);
  const inserted = data.plan.ramps.filter((ramp) => !ramp.explicit).length;
  const boxes = data.plan.handlers.length + inserted + fused.reduce((sum, own) => sum + 1 - own.handlers.length, 0);
  const drawn = [...shown[0].querySelectorAll(".box")];
  if (drawn.length !== boxes) complain(`${drawn.length} boxes instead of ${boxes}`);
  for (const box of drawn) {
    const body = box.querySelector(".body").getBBox();
    for (const text of box.querySelectorAll("text")) {
      const { x, width } = text.getBBox();
      if (x < 2 || x + width > body.width - 2) complain(`"${text.textContent}" does not fit its box`);
    }
    const texts = [...box.querySelectorAll("text")].map((text) => [text.textContent, text.getBBox()]);
    for (const [one, a] of texts) {
      const over = ([two, b]) => one < two && a.x < b.x + b.width && b.x < a.x + a.width && near(a.y + a.height, b.y + b.height);
      for (const [two] of texts.filter(over)) complain(`"${one}" overlaps "${two}"`);
    }
  }

  const hover = (target) => {
    target.dispatchEvent(new view.PointerEvent("pointermove", { bubbles: true, pointerType: "mouse" }));
    const tip = page.querySelector(".tip");
    return tip.hidden ? "" : tip.textContent;
  };
  if (!hover(drawn[0]).includes("planned")) complain("a box has no tip");
  const call = page.querySelector(".timeline rect");
  if (call && !hover(call).includes("frame")) complain("a call of the timeline has no tip");
  if (hover(page.querySelector("h1")) !== "") complain("the tip stays");

  const before = shown[0].getBoundingClientRect().width;
  page.querySelector('[data-zoom="in"]').click();
  if (!near(shown[0].getBoundingClientRect().width, before * 1.3)) complain("the graph does not grow");
  page.querySelector('[data-zoom="one"]').click();
  if (!near(shown[0].getBoundingClientRect().width, before)) complain("the graph does not shrink back");

  if (data.report) {
    for (const title of ["Time per handler", "Dropped frames", "Details"]) {
      if (![...page.querySelectorAll("h2")].some((own) => own.textContent === title)) complain(`no ${title}`);
    }
  }
}

addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  frames.forEach(look);
  const result = document.createElement("pre");
  result.id = "complaints";
  result.textContent = JSON.stringify({ frames: frames.length, complaints });
  document.body.append(result);
});
