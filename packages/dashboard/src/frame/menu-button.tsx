import { createContext, use } from 'react';
import { Icon } from '../parts/icon.tsx';

/** Opens or closes the navigation on narrow pages, where it is a drawer. */
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
