import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import type { ReactNode } from 'react';
import { useMay } from '../api/session.ts';

/**
 * Shows a button for an action that needs the role `needs`. Without the role, the button can still get the focus, but does nothing and
 * shows the needed role.
 */
export function RoleButton({
  needs,
  run,
  label,
  className = 'btn',
  disabled = false,
  children,
}: {
  needs: Role;
  run: () => void;
  /** Label of the button for screen readers, if `children` do not name the object of the action. */
  label?: string;
  className?: string;
  disabled?: boolean;
  children: ReactNode;
}) {
  const may = useMay(needs);
  const shown = label === undefined ? undefined : visibleText(label);
  const why = may ? undefined : `Needs the role ${needs}`;
  return (
    <button
      type="button"
      className={className}
      aria-label={shown === undefined || why === undefined ? shown : `${shown}. ${why}`}
      aria-disabled={!may || undefined}
      disabled={disabled}
      title={why}
      onClick={() => may && run()}
    >
      {children}
      {label === undefined && why !== undefined && <span className="sr">{`. ${why}`}</span>}
    </button>
  );
}
