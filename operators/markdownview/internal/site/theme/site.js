// Optional features of pages: choosing a theme, searching while typing, turning pages
// with the arrow keys. Without this file the site has the same pages, links and search.
(() => {
  'use strict';
  const root = document.documentElement;
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const make = (name, className, text) => {
    const element = document.createElement(name);
    if (className) element.className = className;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  // The texts of the site's language, see words.go.
  const texts = JSON.parse(one('.mdv-search').dataset.mdvWords);

  // ---- theme
  const theme = one('.mdv-theme');
  const system = matchMedia('(prefers-color-scheme: dark)');
  const unchosen = () => root.dataset.default || (system.matches ? 'dark' : 'light');
  const shown = () => root.dataset.theme || unchosen();
  const tellTheme = () => theme.setAttribute('aria-pressed', String(shown() === 'dark'));
  const choose = (name) => {
    // If the chosen theme is the default anyway, the choice is removed, and the page
    // follows the default again.
    const choice = name === unchosen() ? null : name;
    if (choice || root.dataset.default) root.dataset.theme = name;
    else delete root.dataset.theme;
    try {
      if (choice) localStorage.setItem('mdv-theme', choice);
      else localStorage.removeItem('mdv-theme');
    } catch {
      // If storage is forbidden, the choice lasts until the reader leaves the page.
    }
    tellTheme();
  };
  theme.hidden = false;
  tellTheme();
  system.addEventListener('change', tellTheme);
  theme.addEventListener('click', () => choose(shown() === 'dark' ? 'light' : 'dark'));

  // ---- navigation
  const nav = one('.mdv-nav');
  const menu = one('.mdv-menu');
  const openNav = (open) => {
    root.classList.toggle('mdv-open', open);
    menu.setAttribute('aria-expanded', String(open));
    if (open) (one('[aria-current]', nav) || one('a', nav)).focus();
    else menu.focus();
  };
  menu.setAttribute('role', 'button');
  menu.setAttribute('aria-expanded', 'false');
  menu.addEventListener('click', (event) => {
    event.preventDefault();
    openNav(!root.classList.contains('mdv-open'));
  });
  menu.addEventListener('keydown', (event) => {
    if (event.key === ' ') {
      event.preventDefault();
      menu.click();
    }
  });
  one('.mdv-close').addEventListener('click', (event) => {
    event.preventDefault();
    openNav(false);
  });
  const current = one('[aria-current]', nav);
  if (current) {
    const box = nav.getBoundingClientRect();
    const line = current.getBoundingClientRect();
    if (line.bottom > box.bottom - 40) nav.scrollTop += line.top - box.top - box.height / 3;
  }

  // ---- contents of the page
  const toc = new Map(all('.mdv-toc a').map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  if (toc.size > 0) {
    const headings = all('.mdv-text :is(h2, h3)[id]').filter((heading) => toc.has(heading.id));
    let marked = null;
    const mark = () => {
      const top = headings.filter((heading) => heading.getBoundingClientRect().top < 120).pop();
      const link = top && toc.get(top.id);
      if (link === marked) return;
      if (marked) marked.removeAttribute('aria-current');
      if (link) link.setAttribute('aria-current', 'true');
      marked = link;
    };
    let waiting = false;
    addEventListener('scroll', () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        mark();
      });
    }, { passive: true });
    mark();
  }

  // ---- copying code
  if (navigator.clipboard) {
    for (const pre of all('.mdv-text pre')) {
      const box = make('div', 'mdv-code');
      const button = make('button', 'mdv-copy', texts.copy);
      button.type = 'button';
      button.addEventListener('click', async () => {
        try {
          await navigator.clipboard.writeText(pre.textContent);
          button.textContent = texts.copied;
        } catch {
          button.textContent = texts.notAllowed;
        }
        setTimeout(() => { button.textContent = texts.copy; }, 1500);
      });
      pre.replaceWith(box);
      box.append(pre, button);
    }
  }

  // ---- search; the same as on the server, see search.go
  const form = one('.mdv-search');
  const input = one('input', form);
  const list = make('div', 'mdv-results');
  list.id = 'mdv:results';
  list.setAttribute('role', 'listbox');
  list.setAttribute('aria-label', texts.results);
  list.hidden = true;
  form.append(list);
  const status = make('p', 'mdv-unseen');
  status.setAttribute('role', 'status');
  form.append(status);
  input.setAttribute('role', 'combobox');
  input.setAttribute('aria-controls', list.id);
  input.setAttribute('aria-expanded', 'false');
  input.setAttribute('aria-autocomplete', 'list');

  let loading = null;
  const load = () => {
    loading ??= fetch(form.dataset.mdvIndex).then((answer) => {
      if (!answer.ok) throw new Error(`the index: ${answer.status}`);
      return answer.json();
    }).then((pages) => {
      for (const page of pages) {
        page.lower = page.t.toLowerCase();
        for (const section of page.s) section.push(section[1].toLowerCase(), section[2].toLowerCase());
      }
      return pages;
    }).catch((error) => {
      loading = null; // the next input tries again
      throw error;
    });
    return loading;
  };

  const letter = /[\p{L}\p{Nd}]/u;
  const weigh = (text, word, weight, most) => {
    let sum = 0;
    for (let from = 0, seen = 0; seen < most; seen++) {
      const at = text.indexOf(word, from);
      if (at < 0) break;
      sum += weight;
      if (at === 0 || !letter.test(text[at - 1])) sum += weight;
      from = at + word.length;
    }
    return sum;
  };
  const search = (pages, words) => {
    const found = [];
    for (const page of pages) {
      page.s.forEach(([id, heading, text, lowerHeading, lowerText], n) => {
        let matched = 0;
        let score = 0;
        for (const word of words) {
          const gain = weigh(lowerHeading, word, 12, 1) + Math.floor(weigh(page.lower, word, 8, 1) / (n > 0 ? 2 : 1)) + weigh(lowerText, word, 1, 5);
          if (gain > 0) matched++;
          score += gain;
        }
        if (matched > 0) found.push({ page, id: n > 0 ? id : '', heading, text, lowerText, matched, score });
      });
    }
    found.sort((a, b) => b.matched - a.matched || b.score - a.score);
    const perPage = new Map();
    const results = [];
    for (const hit of found) {
      if (results.length === 30 || hit.matched < found[0].matched) break;
      const seen = (perPage.get(hit.page) || 0) + 1;
      perPage.set(hit.page, seen);
      if (seen <= 3) results.push(hit);
    }
    return results;
  };

  const snippet = (hit, words) => {
    const lower = hit.lowerText;
    const text = lower.length === hit.text.length ? hit.text : lower;
    const places = words.map((word) => lower.indexOf(word)).filter((at) => at >= 0);
    const first = places.length > 0 ? Math.min(...places) : 0;
    let from = Math.max(0, first - 50);
    const space = text.lastIndexOf(' ', from);
    from = from > 0 && from - space < 20 ? space + 1 : from;
    const to = Math.min(text.length, from + 160);
    const line = make('p');
    if (from > 0) line.append('… ');
    for (let at = from; at < to;) {
      let next = to;
      let size = 0;
      for (const word of words) {
        const place = lower.indexOf(word, at);
        if (place >= 0 && place + word.length <= to && (place < next || (place === next && word.length > size))) {
          next = place;
          size = word.length;
        }
      }
      line.append(text.slice(at, next));
      if (size > 0) line.append(make('mark', '', text.slice(next, next + size)));
      at = next + size;
    }
    if (to < text.length) line.append(' …');
    return line;
  };

  let active = -1;
  const options = () => all('a', list);
  const activate = (n) => {
    const lines = options();
    if (active >= 0 && lines[active]) lines[active].setAttribute('aria-selected', 'false');
    active = lines.length > 0 ? (n + lines.length) % lines.length : -1;
    if (active < 0) {
      input.removeAttribute('aria-activedescendant');
      return;
    }
    lines[active].setAttribute('aria-selected', 'true');
    lines[active].scrollIntoView({ block: 'nearest' });
    input.setAttribute('aria-activedescendant', lines[active].id);
  };
  const showList = (show) => {
    list.hidden = !show;
    input.setAttribute('aria-expanded', String(show));
    if (!show) {
      active = -1;
      input.removeAttribute('aria-activedescendant');
    }
  };
  const showResults = (results, words) => {
    list.replaceChildren(...results.map((hit, n) => {
      const line = make('a');
      line.id = `mdv:result${n}`;
      line.setAttribute('role', 'option');
      line.setAttribute('aria-selected', 'false');
      line.tabIndex = -1;
      line.href = form.dataset.mdvBase + hit.page.u.split('/').map(encodeURIComponent).join('/') + (hit.id ? `#${encodeURIComponent(hit.id)}` : '');
      const title = make('strong', '', hit.page.t);
      line.append(title);
      if (hit.heading && hit.heading !== hit.page.t) line.append(make('span', '', ` › ${hit.heading}`));
      line.append(snippet(hit, words));
      return line;
    }));
    if (results.length === 0) list.append(make('p', 'mdv-none', texts.none));
    status.textContent = results.length === 1 ? texts.one : texts.many.replace('%d', results.length);
    active = -1;
    input.removeAttribute('aria-activedescendant');
    showList(true);
  };
  let asked = 0;
  const ask = async () => {
    const number = ++asked;
    const words = input.value.toLowerCase().split(/[\s"]+/u).filter((word) => word !== '').slice(0, 8);
    if (words.length === 0) {
      showList(false);
      return;
    }
    try {
      const pages = await load();
      if (number === asked) showResults(search(pages, words), words);
    } catch {
      // The index could not be loaded, but the form still leads to the search on the
      // server.
      if (number === asked) showList(false);
    }
  };
  input.addEventListener('focus', () => { load().catch(() => {}); }, { once: true });
  input.addEventListener('input', ask);
  input.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      event.preventDefault();
      if (list.hidden) {
        input.value = '';
        input.blur();
      } else showList(false);
    } else if ((event.key === 'ArrowDown' || event.key === 'ArrowUp') && list.hidden) {
      event.preventDefault();
      ask();
    } else if (event.key === 'ArrowDown') {
      event.preventDefault();
      activate(active + 1);
    } else if (event.key === 'ArrowUp') {
      event.preventDefault();
      activate(active < 0 ? -1 : active - 1);
    } else if (event.key === 'Enter' && active >= 0 && !list.hidden) {
      event.preventDefault();
      options()[active].click();
    }
  });
  list.addEventListener('click', (event) => {
    if (event.target.closest('a')) showList(false);
  });
  document.addEventListener('click', (event) => {
    if (!form.contains(event.target)) showList(false);
  });
  form.addEventListener('focusout', (event) => {
    if (event.relatedTarget && !form.contains(event.relatedTarget)) showList(false);
  });

  // ---- keys
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (event.key === 'Escape' && root.classList.contains('mdv-open')) {
      openNav(false);
      return;
    }
    if (target.closest('input, textarea, select, [contenteditable]')) return;
    if (event.key === '/') {
      event.preventDefault();
      input.focus();
      input.select();
    }
    // In a box that scrolls sideways the arrow keys scroll.
    if (event.shiftKey || target.closest('pre, .table')) return;
    const turn = { ArrowLeft: '.mdv-prev', ArrowRight: '.mdv-next' }[event.key];
    const page = turn && one(turn);
    if (page) {
      event.preventDefault();
      page.click();
    }
  });
})();
