import { visibleText } from '@runyard/contract/wire/visible';
import { lazy, type ReactNode, Suspense, useState } from 'react';

/** One entry of a menu. */
export interface MenuEntry {
  readonly label: ReactNode;
  readonly run: () => void;
  /** The reason why the entry cannot be used now, such as the role that it needs. */
  readonly disabled?: string | false | undefined;
  readonly isDangerous?: boolean;
}

export interface MenuProps {
  /** The name of the menu for screen readers. */
  readonly label: string;
  readonly children: ReactNode;
  /** True: `children` contain a text that names the button, so the button needs no other label. */
  readonly hasWords?: boolean;
  readonly entries: readonly MenuEntry[];
  readonly className?: string;
}

const OpenMenu = lazy(async () => ({ default: (await import('./open-menu.tsx')).OpenMenu }));

/** Shows a button that opens a menu. The code of menus is loaded when the first menu opens. */
export function Menu({ className = 'btn ghost sm icon', ...menu }: MenuProps) {
  const [isUsed, setUsed] = useState(false);
  const button = (
    <button
      type="button"
      className={className}
      aria-label={menu.hasWords ? undefined : visibleText(menu.label)}
      aria-haspopup="menu"
      onClick={() => setUsed(true)}
    >
      {menu.children}
    </button>
  );
  if (!isUsed) return button;
  return (
    <Suspense fallback={button}>
      <OpenMenu className={className} {...menu} />
    </Suspense>
  );
}
