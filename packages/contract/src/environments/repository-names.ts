/** Patterns of the names of repositories and refs. This file imports nothing, because the dashboard loads it. */

/** A repository or its owner. The name cannot be a path or consist only of dots. */
export const repositoryName = /^(?!\.+$)[A-Za-z0-9_.-]{1,100}$/;

/** A branch, a tag or the id of a commit. */
export const refName = /^[A-Za-z0-9_][A-Za-z0-9_./+@#-]{0,199}$/;

/** Returns whether git could read a part of the ref in another way. */
export const isAmbiguousRef = (ref: string): boolean => ref.includes('..') || ref.includes('@{');
