import { createContext, use } from 'react';
import { Button } from '../parts/controls.tsx';
import styles from './frame.module.css';

/** A function that opens or closes the navigation on narrow pages. On these pages, the navigation is a drawer. */
export const DrawerContext = createContext<() => void>(() => {});

/** Opens the navigation on narrow pages. */
export function MenuButton() {
  const toggle = use(DrawerContext);
  return <Button kind="ghost" icon="menu" className={styles.burger} aria-label="Menu" onClick={toggle} />;
}
