// This script evaluates to a list of the problems that the page causes for readers who
// see badly or not at all.
(() => {
  const faults = [];
  const all = (selector) => [...document.querySelectorAll(selector)];
  const told = (element) => element.outerHTML.replace(/\s+/g, ' ').slice(0, 100);
  const shown = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });

  if (!document.documentElement.lang) faults.push('the page declares no language');
  if (!document.title.trim()) faults.push('the page has no title');
  for (const [selector, most] of [['main', 1], ['body > header', 1], ['nav', 9], ['[role=search]', 1]]) {
    const found = all(selector).length;
    if (found < 1 || found > most) faults.push(`${found} elements for ${selector}`);
  }
  const navs = all('nav').map((nav) => nav.getAttribute('aria-label'));
  if (new Set(navs).size !== navs.length || navs.includes(null)) faults.push(`navigations have no name or the same name: ${navs}`);

  const ids = all('[id]').map((element) => element.id);
  for (const id of new Set(ids.filter((id, n) => ids.indexOf(id) !== n))) faults.push(`two elements have id ${id}`);
  for (const image of all('img')) if (!image.hasAttribute('alt')) faults.push(`no alt: ${told(image)}`);
  for (const svg of all('svg')) {
    if (!svg.closest('[aria-hidden=true]') && !svg.getAttribute('aria-label') && !svg.querySelector('title')) faults.push(`no name: ${told(svg)}`);
  }
  for (const element of all('a[href], button, summary')) {
    const name = element.getAttribute('aria-label') || element.textContent.trim() || [...element.querySelectorAll('img')].map((i) => i.alt).join('');
    if (shown(element) && !name) faults.push(`no name: ${told(element)}`);
  }
  for (const input of all('input, select, textarea')) {
    if (!input.getAttribute('aria-label') && !(input.labels || []).length && !input.closest('label, li')) faults.push(`no label: ${told(input)}`);
  }

  let before = 0;
  const headings = all('main :is(h1, h2, h3, h4, h5, h6)');
  if (headings.filter((h) => h.tagName === 'H1').length !== 1) faults.push('the page does not have exactly one h1');
  for (const heading of headings) {
    const level = Number(heading.tagName[1]);
    if (level > before + 1) faults.push(`a heading of level ${level} after one of level ${before}: ${told(heading)}`);
    before = level;
  }

  // The contrast between each text and its background, as WCAG 2 defines it.
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const channels = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => [0, 1, 2].map((n) => top[n] * top[3] + under[n] * (1 - top[3])).concat(1);
  const behind = (element) => {
    if (!element) return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0, 1] : [255, 255, 255, 1];
    const own = channels(getComputedStyle(element).backgroundColor);
    return own[3] === 1 ? own : over(own, behind(element.parentElement));
  };
  const luminance = (c) => {
    const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const seen = new Set();
  let texts = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.data.trim() || !shown(element)) continue;
    texts++;
    const back = behind(element);
    const ratio = contrast(over(channels(getComputedStyle(element).color), back), back);
    const what = `${ratio.toFixed(2)} ${told(element).slice(0, 60)}`;
    if (ratio < 4.5 && !seen.has(what)) {
      seen.add(what);
      faults.push(`contrast of ${what}`);
    }
  }
  if (texts < 10) faults.push(`only ${texts} texts are shown`);
  return faults;
})()
