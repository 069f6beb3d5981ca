import { h } from "./dom.js";

const height = 28; // of a row, in pixels
const beyond = 10; // rows that are drawn outside the visible part

// List draws only the visible rows of a long list. Rows are elements of equal height. The keys
// up, down, page up, page down, home and end choose a row, and enter opens it.
export class List {
  // fetch(from, to) returns a promise of the items, draw(item) the content of a row, and
  // open(item) is called for the chosen one.
  constructor(element, label, { fetch, draw, open, choose }) {
    Object.assign(this, { element, fetch, draw, open, choose, total: 0, chosen: -1, first: 0, items: [] });
    this.space = h("div", { class: "space" });
    element.replaceChildren(this.space);
    element.tabIndex = 0;
    element.setAttribute("role", "listbox");
    element.setAttribute("aria-label", label);
    element.addEventListener("scroll", () => this.refresh());
    element.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.refresh()).observe(element);
  }

  // set changes the number of items, and draws all visible ones again.
  set(total) {
    const atEnd = this.total > 0 && this.element.scrollTop + this.element.clientHeight >= this.total * height - height;
    this.total = total;
    this.space.style.height = total * height + "px";
    if (atEnd && this.sticky) this.element.scrollTop = total * height;
    return this.refresh();
  }

  async refresh() {
    const from = Math.max(0, Math.floor(this.element.scrollTop / height) - beyond);
    const to = Math.min(this.total, from + Math.ceil(this.element.clientHeight / height) + 2 * beyond);
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const items = to > from ? await this.fetch(from, to) : [];
    if (turn !== this.turn) return; // a later refresh has begun
    this.first = from;
    this.items = items;
    this.space.replaceChildren(...items.map((item, i) => this.row(item, from + i)));
    this.mark();
  }

  row(item, index) {
    const row = h("div", { class: "row", role: "option", id: `${this.element.id}-${index}` }, this.draw(item));
    row.classList.add(...(this.classes?.(item) ?? []));
    row.style.top = index * height + "px";
    row.style.height = row.style.lineHeight = height + "px";
    row.addEventListener("click", () => {
      this.select(index);
      this.open(item);
    });
    return row;
  }

  mark() {
    for (const [i, row] of [...this.space.children].entries()) {
      const is = this.first + i === this.chosen;
      row.classList.toggle("chosen", is);
      row.setAttribute("aria-selected", is);
    }
    if (this.chosen >= 0) this.element.setAttribute("aria-activedescendant", `${this.element.id}-${this.chosen}`);
  }

  select(index) {
    this.chosen = Math.max(0, Math.min(this.total - 1, index));
    const top = this.chosen * height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + height > this.element.scrollTop + this.element.clientHeight) {
      this.element.scrollTop = top + height - this.element.clientHeight;
    }
    this.mark();
    const item = this.items[this.chosen - this.first];
    if (item) this.choose?.(item);
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / height) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in moves && this.total > 0) {
      event.preventDefault();
      const first = this.chosen < 0 && Math.abs(moves[event.key]) === 1;
      this.select(first ? 0 : Math.max(0, this.chosen) + moves[event.key]);
    } else if (event.key === "Enter") {
      const item = this.items[this.chosen - this.first];
      if (item) this.open(item);
    }
  }
}
