// Runs before anything is shown, so that the page does not flash in another theme
// first.
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('mdv-js');
  try {
    const chosen = localStorage.getItem('mdv-theme');
    if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden. The choice of a theme is then not remembered.
  }
})();
