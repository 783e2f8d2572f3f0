/* Chooses light or dark: the browser's wish unless the reader chose; the choice is remembered in this browser.
   Loaded in the head, before anything is drawn. A button with data-theme-toggle in the page goes round the three. */
(function () {
  "use strict";
  const KEY = "specbudget-theme";
  const CHOICES = ["auto", "light", "dark"];
  const root = document.documentElement;

  function remembered() {
    try {
      const kept = window.localStorage.getItem(KEY);
      return CHOICES.includes(kept) ? kept : "auto";
    } catch {
      return "auto"; // a browser that keeps nothing, such as a file opened from disk
    }
  }

  let choice = remembered();

  function show() {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
    for (const button of document.querySelectorAll("[data-theme-toggle]")) {
      button.hidden = false;
      const word = button.querySelector("[data-theme-word]") ?? button;
      word.textContent = { auto: "Auto", light: "Light", dark: "Dark" }[choice];
      button.dataset.choice = choice;
    }
  }

  show();
  document.addEventListener("DOMContentLoaded", function () {
    show();
    document.addEventListener("click", function (event) {
      if (!(event.target instanceof Element) || event.target.closest("[data-theme-toggle]") === null) return;
      choice = CHOICES[(CHOICES.indexOf(choice) + 1) % CHOICES.length];
      try {
        window.localStorage.setItem(KEY, choice);
      } catch {
        // then it holds until the page is left
      }
      show();
    });
  });

  // a printed page is light; what is drawn on a canvas follows data-theme
  window.addEventListener("beforeprint", function () {
    root.dataset.theme = "light";
  });
  window.addEventListener("afterprint", show);
})();
