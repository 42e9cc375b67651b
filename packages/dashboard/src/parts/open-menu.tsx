/** The menus of React Aria. `menu.tsx` loads this file when a person opens the first menu. */

import { visibleText } from '@runyard/contract/wire/visible';
import { useEffect, useRef, useState } from 'react';
import { Menu as AriaMenu, Button, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import type { MenuProps } from './menu.tsx';

/** Shows the button of a menu, and the open menu. */
export function OpenMenu({ label, children, entries, className, hasWords = false }: MenuProps) {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  // This button replaces the button that the person clicked. Give the new button the focus before the menu opens, because the closing
  // menu returns the focus to the element that had the focus.
  useEffect(() => {
    button.current?.focus({ preventScroll: true });
    setOpen(true);
  }, []);
  return (
    <MenuTrigger isOpen={isOpen} onOpenChange={setOpen}>
      <Button ref={button} className={className ?? ''} {...(hasWords ? {} : { 'aria-label': visibleText(label) })}>
        {children}
      </Button>
      <Popover className="pop" placement="bottom end">
        <AriaMenu className="menu" aria-label={visibleText(label)}>
          {entries.map(({ label: text, run, disabled, isDangerous = false }, index) => (
            <MenuItem
              key={index}
              className={`menu-i ${isDangerous ? 'dan' : ''}`}
              isDisabled={typeof disabled === 'string'}
              textValue={typeof text === 'string' ? text : label}
              onAction={run}
            >
              {typeof text === 'string' ? visibleText(text) : text}
              {typeof disabled === 'string' && <span className="dim small right">{disabled}</span>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
