import { hash, timingSafeEqual } from 'node:crypto';

const hashOf = (text: string): Buffer => hash('sha256', text, 'buffer');

/** Compares two texts in a time that reveals neither the place of a difference nor the length of the second. */
export const isSameSecret = (given: string, right: string): boolean => timingSafeEqual(hashOf(given), hashOf(right));
