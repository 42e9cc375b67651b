import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import { Link, type LinkProps } from '@tanstack/react-router';
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
  /** Default: the button sends its form. */
  run?: () => void;
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
      type={run === undefined ? 'submit' : 'button'}
      className={className}
      aria-label={shown === undefined || why === undefined ? shown : `${shown}. ${why}`}
      aria-disabled={!may || undefined}
      disabled={may && disabled}
      title={why}
      onClick={(event) => (may ? run?.() : event.preventDefault())}
    >
      {children}
      {label === undefined && why !== undefined && <span className="sr">{`. ${why}`}</span>}
    </button>
  );
}

/** Shows a link to a form whose action needs the role `needs`. Without the role, shows a button that does nothing and shows the needed role. */
export function RoleLink({
  needs,
  className = 'btn',
  children,
  ...target
}: Pick<LinkProps, 'to' | 'params' | 'search'> & { needs: Role; className?: string; children: ReactNode }) {
  const may = useMay(needs);
  return may ? (
    <Link className={className} {...target}>
      {children}
    </Link>
  ) : (
    <RoleButton needs={needs} className={className} run={() => {}}>
      {children}
    </RoleButton>
  );
}
