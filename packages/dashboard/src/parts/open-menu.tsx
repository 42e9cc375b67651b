/** The menus of React Aria. `menu.tsx` loads this file when a person opens the first menu. */

import { visibleText } from '@runyard/contract/wire/visible';
import { useEffect, useRef, useState } from 'react';
import { Menu as AriaMenu, Button, MenuItem, MenuTrigger, Popover } from 'react-aria-components';
import { Hint } from './blocks.tsx';
import { buttonLooked } from './controls.tsx';
import styles from './menu.module.css';
import type { MenuProps } from './menu.tsx';

/** As `buttonLooked`, with the types of React Aria. */
const ariaLooked = ({ className = '', children }: ReturnType<typeof buttonLooked>) => ({ className, children });

/** Shows the button of a menu, and the open menu. */
export function OpenMenu({ label, entries, hasWords = false, ...looks }: MenuProps) {
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
      <Button
        ref={button}
        {...ariaLooked(buttonLooked(looks))}
        {...(hasWords ? {} : { 'aria-label': visibleText(label) })}
      />
      <Popover className={styles.popover ?? ''} placement="bottom end">
        <AriaMenu className={styles.menu ?? ''} aria-label={visibleText(label)}>
          {entries.map(({ label: text, run, disabled, isDangerous = false }, index) => (
            <MenuItem
              key={index}
              className={`${styles.entry} ${isDangerous ? styles.danger : ''}`}
              isDisabled={typeof disabled === 'string'}
              textValue={typeof text === 'string' ? text : label}
              onAction={run}
            >
              {typeof text === 'string' ? visibleText(text) : text}
              {typeof disabled === 'string' && <Hint right>{disabled}</Hint>}
            </MenuItem>
          ))}
        </AriaMenu>
      </Popover>
    </MenuTrigger>
  );
}
