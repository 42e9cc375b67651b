import { createContext, use } from 'react';
import { Icon } from '../parts/icon.tsx';

/** A function that opens or closes the navigation on narrow pages. On these pages, the navigation is a drawer. */
export const DrawerContext = createContext<() => void>(() => {});

/** Opens the navigation on narrow pages. */
export function MenuButton() {
  const toggle = use(DrawerContext);
  return (
    <button type="button" className="btn ghost icon burger" aria-label="Menu" onClick={toggle}>
      <Icon name="menu" />
    </button>
  );
}
