// Runs before anything is shown, so that a chosen theme does not flash.
(() => {
  'use strict';
  const root = document.documentElement;
  root.classList.add('mdv-js');
  try {
    const chosen = localStorage.getItem('mdv-theme');
    if (chosen === 'light' || chosen === 'dark') root.dataset.theme = chosen;
  } catch {
    // Storage may be forbidden. Then no choice can be remembered.
  }
})();
