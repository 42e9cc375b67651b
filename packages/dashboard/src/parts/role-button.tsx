import type { Role } from '@runyard/contract/wire/access';
import { visibleText } from '@runyard/contract/wire/visible';
import type { LinkProps } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMay } from '../api/session.ts';
import { Text } from './blocks.tsx';
import { Button, ButtonLink, type ButtonLook } from './controls.tsx';

/**
 * Shows a button for an action that needs the role `needs`. Without the role, the button can still get the focus, but does nothing and
 * shows the needed role.
 */
export function RoleButton({
  needs,
  run,
  label,
  disabled = false,
  children,
  ...looks
}: ButtonLook & {
  needs: Role;
  /** Default: the button sends its form. */
  run?: () => void;
  /** Label of the button for screen readers, if `children` do not name the object of the action. */
  label?: string;
  disabled?: boolean;
  children?: ReactNode;
}) {
  const may = useMay(needs);
  const shown = label === undefined ? undefined : visibleText(label);
  const why = may ? undefined : `Needs the role ${needs}`;
  return (
    <Button
      {...looks}
      type={run === undefined ? 'submit' : 'button'}
      aria-label={shown === undefined || why === undefined ? shown : `${shown}. ${why}`}
      aria-disabled={!may || undefined}
      disabled={may && disabled}
      title={why}
      onClick={(event) => (may ? run?.() : event.preventDefault())}
    >
      {label === undefined && why !== undefined ? (
        <>
          {children}
          <Text spoken>{`. ${why}`}</Text>
        </>
      ) : (
        children
      )}
    </Button>
  );
}

/** Shows a link to a form whose action needs the role `needs`. Without the role, shows a button that does nothing and shows the needed role. */
export function RoleLink({
  needs,
  kind,
  icon,
  children,
  ...target
}: Pick<LinkProps, 'to' | 'params' | 'search'> &
  Pick<ButtonLook, 'kind' | 'icon'> & { needs: Role; children: ReactNode }) {
  const may = useMay(needs);
  return may ? (
    <ButtonLink kind={kind} icon={icon} {...target}>
      {children}
    </ButtonLink>
  ) : (
    <RoleButton needs={needs} kind={kind} icon={icon} run={() => {}}>
      {children}
    </RoleButton>
  );
}
