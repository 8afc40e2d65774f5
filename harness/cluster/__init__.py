"""A Kubernetes API server of our own: etcd and kube-apiserver, and kubectl as people use it."""
