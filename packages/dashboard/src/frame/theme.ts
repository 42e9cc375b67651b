import { keep } from '../api/kept.ts';

/** Switches between light and dark, and stores the choice in this browser, where `public/app/theme.js` reads it. */
export function switchTheme(): void {
  const root = document.documentElement;
  const isDark =
    root.dataset.theme === 'dark' || (!root.dataset.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  root.dataset.theme = isDark ? 'light' : 'dark';
  keep('theme', root.dataset.theme);
}
