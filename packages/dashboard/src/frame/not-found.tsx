import { Link } from '@tanstack/react-router';

/** Shows that an object was not found. Lists all possible reasons, because the answer of the service is the same for all of them. */
export function NotFound({ what = 'page' }: { what?: string }) {
  return (
    <div className="pad stack">
      <h1>There is no such {what}</h1>
      <p className="mut">
        The address may be wrong, the {what} may belong to another team, or it was deleted.{' '}
        <Link to="/runs" className="link">
          Open the runs
        </Link>
      </p>
    </div>
  );
}
