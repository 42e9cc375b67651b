// Sets the colour theme that this browser chose last, before the first paint.
try {
  const theme = localStorage.getItem('runyard.theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // A browser may forbid storage. The theme of the system holds.
}
