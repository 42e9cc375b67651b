import { visibleText } from '@runyard/contract/wire/visible';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { Button, type ButtonLook } from './controls.tsx';

/** One entry of a menu. */
export interface MenuEntry {
  readonly label: ReactNode;
  readonly run: () => void;
  /** The reason why the entry cannot be used now, such as the role that it needs. */
  readonly disabled?: string | false | undefined;
  readonly isDangerous?: boolean;
}

export interface MenuProps extends ButtonLook {
  /** The name of the menu for screen readers. */
  readonly label: string;
  readonly children?: ReactNode;
  /** True: `children` contain a text that names the button, so the button needs no other label. */
  readonly hasWords?: boolean;
  readonly entries: readonly MenuEntry[];
}

const OpenMenu = lazy(async () => ({ default: (await import('./open-menu.tsx')).OpenMenu }));

/** Shows a button that opens a menu. The code of menus is loaded when the first menu opens. */
export function Menu({ label, hasWords = false, entries, ...looks }: MenuProps) {
  const [isUsed, setUsed] = useState(false);
  const button = (
    <Button
      {...looks}
      aria-label={hasWords ? undefined : visibleText(label)}
      aria-haspopup="menu"
      onClick={() => setUsed(true)}
    />
  );
  if (!isUsed) return button;
  return (
    <Suspense fallback={button}>
      <OpenMenu label={label} hasWords={hasWords} entries={entries} {...looks} />
    </Suspense>
  );
}
