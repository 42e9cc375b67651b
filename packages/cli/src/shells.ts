/** Shells whose syntax `env` writes. */
export const shells = ['sh', 'fish'] as const;

/** Shells that `completion` has a script for. */
export const completedShells = ['bash', 'zsh', 'fish'] as const;
