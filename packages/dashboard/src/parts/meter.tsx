/** Shows `value` as a part of `of` in a bar. `mark` shows a second amount on the same scale, such as an estimate. */
export function Meter({ value, of, label, mark }: { value: number; of: number; label: string; mark?: number }) {
  const share = (amount: number): number => (of <= 0 ? 100 : Math.min(100, (amount / of) * 100));
  return (
    <svg
      className={styles.meter}
      viewBox="0 0 100 6"
      preserveAspectRatio="none"
      role="img"
      aria-label={`${Math.round(share(value))} percent ${label}`}
    >
      <rect width={share(value)} height="6" className={value >= of ? styles.bad : styles.ink2} />
      {mark !== undefined && <rect x={Math.min(99.6, share(mark))} width=".4" height="6" className={styles.bad} />}
    </svg>
  );
}

import styles from './chart.module.css';
