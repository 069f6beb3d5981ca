// h builds an element. Text is always set as text, so that nothing in a session can become a
// part of the page.
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== undefined && value !== false && value !== "") element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== undefined && child !== "" && child !== false));
  return element;
}

// seconds formats a time in nanoseconds.
export const seconds = (nanoseconds) => (nanoseconds / 1e9).toFixed(3) + " s";

export const span = (nanoseconds) =>
  nanoseconds < 1e9 ? (nanoseconds / 1e6).toFixed(nanoseconds < 1e7 ? 1 : 0) + " ms" : (nanoseconds / 1e9).toFixed(1) + " s";

export const count = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
