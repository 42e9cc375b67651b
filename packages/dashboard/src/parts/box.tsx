import type { ComponentProps, ElementType } from 'react';
import { type Look, looked } from './look.ts';

export type BoxProps<T extends ElementType> = Look & { readonly as?: T } & Omit<ComponentProps<T>, keyof Look | 'as'>;

/** Makes a component that draws one element with a class name of its own and any `Look`. `tag`: the element, unless `as` names another. */
export const box = <D extends ElementType>(tag: D, ...base: readonly (string | undefined)[]) =>
  // biome-ignore lint/correctness/noComponentHookFactories: it runs once for each component, while its file is loaded
  function Box<T extends ElementType = D>({ as, ...props }: BoxProps<T>) {
    const Tag: ElementType = as ?? tag;
    return <Tag {...looked(props, ...base)} />;
  };
