// The page can be read without this script. The script adds the buttons that need
// it, and unfolds the target of a link.
'use strict';
(() => {
  const findings = [...document.querySelectorAll('details.finding')];

  for (const tools of document.querySelectorAll('.tools')) tools.hidden = findings.length === 0;
  for (const button of document.querySelectorAll('[data-fold]')) {
    button.addEventListener('click', () => {
      for (const finding of findings) finding.open = button.dataset.fold === 'open';
    });
  }

  for (const button of document.querySelectorAll('[data-copy]')) {
    const code = button.parentElement.querySelector('code');
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = 'Copied';
      } catch {
        // Without permission to use the clipboard, select the text instead.
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
    });
  }

  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === 'DETAILS') target.open = true;
  };
  addEventListener('hashchange', unfold);
  unfold();
})();
