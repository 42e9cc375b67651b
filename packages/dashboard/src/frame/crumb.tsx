import { createLink } from '@tanstack/react-router';
import type { ComponentProps } from 'react';
import { look } from '../parts/look.ts';

/** A link to the screen above the shown one. Narrow pages do not show it. */
export const Crumb = createLink((props: ComponentProps<'a'>) => <a {...props} className={look({ notNarrow: true })} />);
