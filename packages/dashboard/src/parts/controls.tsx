/** Buttons, links and inputs. */

import { createLink } from '@tanstack/react-router';
import type { ComponentProps, ReactNode } from 'react';
import { box } from './box.tsx';
import styles from './button.module.css';
import { Icon } from './icon.tsx';
import type { IconName } from './icons.ts';
import inputs from './input.module.css';
import { type Look, looked } from './look.ts';

/** How a button looks. `look="primary"`: the one action that the screen suggests. */
export interface ButtonLook extends Look {
  readonly kind?: 'primary' | 'danger' | 'ghost' | undefined;
  /** The icon before the words. */
  readonly icon?: IconName | undefined;
  /** Without words. Default: if there are no children. */
  readonly square?: boolean;
}

/** Returns the attributes of a button or of a link that looks like one. */
export function buttonLooked<P extends ButtonLook & { readonly children?: ReactNode }>({
  kind,
  icon,
  small,
  children,
  square = children === undefined,
  ...props
}: P) {
  return {
    ...looked(props, styles.button, kind && styles[kind], small && styles.small, square && styles.square),
    children: (
      <>
        {icon && <Icon name={icon} small />}
        {children}
      </>
    ),
  };
}

type Props<T extends 'a' | 'button'> = ButtonLook & Omit<ComponentProps<T>, keyof ButtonLook>;

/** A button. It sends its form only if `type` is `submit`. */
export const Button = (props: Props<'button'>) => <button type="button" {...buttonLooked(props)} />;

/** A link to a page of another program that looks like a button. */
export const ButtonAnchor = (props: Props<'a'>) => <a {...buttonLooked(props)} />;

/** A link to another screen that looks like a button. */
export const ButtonLink = createLink((props: Props<'a'>) => <a {...buttonLooked(props)} />);

/** An input of one line, or with `as` a `textarea` or a `select`. */
export const Input = box('input', inputs.input);

/** A checkbox. */
export const Check = box('input', inputs.check);

/** A label with its input, for inputs that are not in a `Field`. */
export const FieldGroup = box('div', inputs.field);

/** The search field and the filters above a list. */
export const FilterBar = box('section', inputs.filters);

/** The border around a search field with its icon and key. */
export const FindBox = box('span', inputs.find);

/** An input without a border of its own. */
export const FindInput = box('input', inputs.findInput);
