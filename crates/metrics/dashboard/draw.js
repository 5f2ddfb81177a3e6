// Elements, numbers for people, and charts. Text from outside becomes text, and never markup.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a string becomes text. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) {
      element.setAttribute(key, value);
    }
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** What stands where there is no value. */
export const NONE = "–";

const has = (value) => value !== undefined && value !== null && Number.isFinite(value);

/** So many digits behind the point, and none if they are all 0. */
const fixed = (value, places) => value.toFixed(places).replace(/\.0+$/, "");

/** A count, with as many digits as people read. */
export function number(value) {
  if (!has(value)) {
    return NONE;
  }
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(value) >= size) {
      const scaled = value / (size === 1e4 ? 1e3 : size);
      return `${fixed(scaled, scaled >= 100 ? 0 : 1)} ${unit}`;
    }
  }
  if (value > 0 && value < 0.05) {
    return "< 0.1";
  }
  return value >= 10 ? Math.round(value).toLocaleString("en") : fixed(value, 1);
}

/** All digits of a whole number. */
export const digits = (value) => (has(value) ? value.toLocaleString("en") : NONE);

export const perSecond = (value) => (has(value) ? `${number(value)}/s` : NONE);

export function bytes(value) {
  if (!has(value)) {
    return NONE;
  }
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let place = 0;
  let scaled = value;
  while (scaled >= 1024 && place + 1 < units.length) {
    scaled /= 1024;
    place += 1;
  }
  return `${fixed(scaled, place === 0 || scaled >= 100 ? 0 : 1)} ${units[place]}`;
}

/** A time that is given in microseconds. */
export function duration(micros) {
  if (!has(micros)) {
    return NONE;
  }
  if (micros < 1000) {
    return `${Math.round(micros)} µs`;
  }
  if (micros < 1e6) {
    return `${fixed(micros / 1e3, micros < 1e4 ? 1 : 0)} ms`;
  }
  return `${fixed(micros / 1e6, micros < 1e7 ? 1 : 0)} s`;
}

/** A time for people, from seconds. */
export function span(seconds) {
  const steps = [[86_400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  for (const [size, unit, smaller, smallerUnit] of steps) {
    if (seconds >= size) {
      const rest = Math.floor((seconds % size) / smaller);
      return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${smallerUnit}` : ""}`;
    }
  }
  return `${Math.max(0, Math.floor(seconds))} s`;
}

export function percent(share) {
  if (!has(share)) {
    return NONE;
  }
  if (share > 0 && share < 0.001) {
    return "< 0.1 %";
  }
  // Not all is not 100 %.
  const isClose = share < 0.1 || share > 0.99;
  return `${share < 1 ? fixed(Math.floor(share * (isClose ? 1000 : 100)) / (isClose ? 10 : 1), 1) : 100} %`;
}

/** A value with its unit apart, so that the unit can be smaller. */
export function withUnit(text) {
  const [, figure, unit] = /^(\S+)(?:\s?(\D.*))?$/.exec(text) ?? [undefined, text, undefined];
  return [figure, unit ? make("span", { class: "unit" }, unit) : undefined];
}

/** A word with a mark of a shape and a colour of its own. */
export function state(kind, word) {
  return make(
    "span",
    { class: `state ${kind}` },
    make("span", { class: "mark", "aria-hidden": "true" }),
    make("span", { class: "word" }, word),
  );
}

/** A section of the runbooks: paragraphs, with what is bold or code in them. */
export function prose(markdown) {
  // Lines of a paragraph are one; lists and tables keep theirs.
  const joined = markdown.replaceAll(/([^\n|])\n(?=[^\n\-|\d ])/g, "$1 ").replaceAll(/\n {3}(?=\S)/g, " ");
  return joined.split(/(\*\*[^*]+\*\*|`[^`]+`|\[[^\]]+\]\([^)]+\))/).map((part) => {
    if (part.startsWith("**")) {
      return make("strong", {}, part.slice(2, -2));
    }
    if (part.startsWith("`")) {
      return make("code", {}, part.slice(1, -1));
    }
    return part.replace(/^\[([^\]]+)\]\(.*\)$/, "$1");
  });
}

/** Fills a table: columns with `title`, whether they hold numbers (`n`), and rows of cells. */
export function table(element, columns, rows, empty) {
  const head = columns.map(({ title, n }) => make("th", { scope: "col", class: n && "n" }, title));
  const line = (cells) =>
    make("tr", {}, ...cells.map((cell, place) => (cell instanceof HTMLTableCellElement ? cell : make("td", { class: columns[place].n && "n" }, cell))));
  const body = rows.length > 0 ? rows.map(line) : [make("tr", { class: "empty" }, make("td", { colspan: columns.length }, empty))];
  element.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
}

/** The smallest of 1, 2, 5, 10, 20 .. that is not below the value. */
function ceiling(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 2, 5, 10].find((step) => step * size >= value);
}

/** The parts of a line that have values. */
function pieces(points, x, y) {
  const parts = [];
  let current = [];
  for (const [time, value] of points) {
    if (has(value)) {
      current.push(`${x(time).toFixed(1)},${y(value).toFixed(1)}`);
    } else if (current.length > 0) {
      parts.push(current);
      current = [];
    }
  }
  return current.length > 0 ? [...parts, current] : parts;
}

/** A line without axes. */
export function sparkline(element, points, range) {
  const values = points.map(([, value]) => value).filter(has);
  const top = Math.max(...values, 1e-9) * 1.08;
  const [from, to] = range;
  const x = (time) => ((time - from) / (to - from)) * 200;
  const y = (value) => 29 - (value / top) * 27;
  const parts = pieces(points, x, y);
  const areas = parts.map((part) => {
    const [first, last] = [part[0].split(",")[0], part.at(-1).split(",")[0]];
    return svg("polygon", { class: "area f1", points: `${first},30 ${part.join(" ")} ${last},30` });
  });
  const lines = parts.map((part) => svg("polyline", { class: "line s1", points: part.join(" ") }));
  element.setAttribute("viewBox", "0 0 200 30");
  element.setAttribute("preserveAspectRatio", "none");
  element.replaceChildren(...areas, ...lines);
}

/** How a line is drawn: a colour, and dashes of its own. */
const style = (place) => `line s${(place % 6) + 1}${place > 0 ? ` dash${((place - 1) % 3) + 2}` : ""}`;

/** The least width of a chart, and what its card has beside it. */
const [WIDTH_MIN, PADDING] = [260, 34];

/** Times with labels, in minutes before now, for a chart of so many. */
const marks = (minutes) => (minutes >= 10 ? [10, 8, 6, 4, 2, 0] : minutes >= 5 ? [5, 4, 3, 2, 1, 0] : minutes >= 2 ? [2, 1.5, 1, 0.5, 0] : [1, 0.5, 0]);

const markName = (minutes) => (minutes === 0 ? "now" : minutes < 1 ? `−${minutes * 60} s` : `−${minutes} min`);

/** A chart of lines, with `name` and `points`, over time. */
export function chart(figure, title, lines, range, format, floor) {
  const width = Math.max(WIDTH_MIN, figure.clientWidth - PADDING);
  const [height, left, right, top, bottom] = [150, 58, 4, 8, 22];
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value)).filter(has);
  const highest = ceiling(Math.max(...values, floor));
  const [from, to] = range;
  const x = (time) => left + ((time - from) / (to - from)) * (width - left - right);
  const y = (value) => height - bottom - (value / highest) * (height - top - bottom);
  const parts = [];
  for (const share of [0, 0.5, 1]) {
    const value = highest * share;
    parts.push(svg("line", { class: share === 0 ? "axis" : "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    parts.push(svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, format(value)));
  }
  const labels = marks((to - from) / 60_000);
  const isNarrow = width < 420;
  labels.forEach((minutes, place) => {
    // Every second one where there is no room.
    if (isNarrow && place % 2 === 1 && minutes > 0) {
      return;
    }
    const anchor = minutes === 0 ? "end" : place === 0 ? "start" : "middle";
    parts.push(svg("text", { x: x(to - minutes * 60_000), y: height - 5, "text-anchor": anchor }, markName(minutes)));
  });
  lines.forEach(({ points }, place) => {
    pieces(points, x, y).forEach((part) => {
      parts.push(svg("polyline", { class: style(place), points: part.length > 1 ? part.join(" ") : `${part[0]} ${part[0]}` }));
    });
  });
  const legends = lines.map(({ name, points }, place) => {
    const sample = svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, svg("line", { class: style(place), x1: 0, x2: 22, y1: 4, y2: 4 }));
    const last = points.at(-1)?.[1];
    return make("span", { class: "legend" }, sample, make("span", {}, name), make("b", {}, format(last)));
  });
  const spoken = lines.map(({ name, points }) => `${name} ${format(points.at(-1)?.[1])}`).join(", ");
  const drawing = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: now ${spoken}` }, ...parts);
  figure.replaceChildren(make("figcaption", {}, make("h3", {}, title), make("div", { class: "legends" }, ...legends)), drawing);
}
